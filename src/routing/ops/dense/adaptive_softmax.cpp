#include "routing/ops/dense/adaptive_softmax.h"

#include "routing/core/error.h"
#include "routing/kernels/pointwise/log_sum_exp.h"
#include "routing/ops/dense/dense_tensors.h"
#include "routing/ops/embedding.h"
#include "routing/ops/one_derivative.h"

#include <torch/csrc/autograd/custom_function.h>

#include <limits>
#include <vector>

namespace routing {
namespace {

std::int64_t words_of(std::span<const SoftmaxBand> bands, std::size_t band) {
  const std::int64_t symbols = band == 0 ? static_cast<std::int64_t>(bands.size()) - 1 : 0;
  return bands[band].table.size(0) - symbols;
}

void check_bands(std::span<const SoftmaxBand> bands, std::int64_t width) {
  require<InputError>(!bands.empty(), "adaptive softmax: there are no bands; give at least one");
  require<InputError>(!bands.front().projection.defined(),
                      "adaptive softmax: the first band has a projection, but its symbols read the rows themselves");
  for (std::size_t band = 0; band < bands.size(); ++band) {
    const at::Tensor& table = bands[band].table;
    require<InputError>(table.dim() == 2 && words_of(bands, band) >= 1, "adaptive softmax: the table of band ", band,
                        " of ", bands.size(), " is ", table.sizes(),
                        ", but must be [words, width], in the first band with a row for each further one");
    if (band == 0) continue;
    const at::Tensor& projection = bands[band].projection;
    require<InputError>(projection.defined() && projection.dim() == 2 && projection.size(0) == table.size(1) &&
                            projection.size(1) == width,
                        "adaptive softmax: the projection of band ", band, " is ",
                        projection.defined() ? projection.sizes() : at::IntArrayRef(), ", but must be [", table.size(1),
                        ", ", width, "]");
  }
}

// What the first band predicts of each row, and which rows each further band has.
struct TargetsByBand {
  std::vector<std::int64_t> first = {};                 // words, symbols of further bands, or -1
  std::vector<std::vector<std::int64_t>> rows = {};     // of band b at b - 1
  std::vector<std::vector<std::int64_t>> targets = {};  // inside the band
  // Of each row, its place among the rows of all further bands, one band after the other; the place behind the last
  // where it is of none.
  std::vector<std::int64_t> places = {};
};

TargetsByBand targets_by_band(std::span<const SoftmaxBand> bands, const at::Tensor& targets) {
  const at::Tensor flat = targets.cpu().contiguous();
  const auto* target = flat.data_ptr<std::int64_t>();
  const std::int64_t count = flat.numel();
  const std::size_t further = bands.size() - 1;
  std::int64_t words = 0;
  for (std::size_t band = 0; band < bands.size(); ++band) words += words_of(bands, band);
  TargetsByBand result;
  result.first.resize(static_cast<std::size_t>(count));
  result.rows.resize(further);
  result.targets.resize(further);
  for (std::int64_t row = 0; row < count; ++row) {
    require<InputError>(target[row] >= -1 && target[row] < words, "adaptive softmax: target ", target[row], " in row ",
                        row, ", but the vocabulary has ", words, " entries; use -1 for rows that do not count");
    std::int64_t& first = result.first[static_cast<std::size_t>(row)];
    first = target[row];
    if (target[row] < words_of(bands, 0)) continue;
    std::size_t band = 0;
    std::int64_t word = target[row];
    while (word >= words_of(bands, band)) word -= words_of(bands, band++);
    first = words_of(bands, 0) + static_cast<std::int64_t>(band) - 1;
    result.rows[band - 1].push_back(row);
    result.targets[band - 1].push_back(word);
  }
  std::int64_t place = 0;
  for (const auto& rows : result.rows) place += static_cast<std::int64_t>(rows.size());
  result.places.assign(static_cast<std::size_t>(count), place);
  place = 0;
  for (const auto& rows : result.rows) {
    for (const std::int64_t row : rows) result.places[static_cast<std::size_t>(row)] = place++;
  }
  return result;
}

at::Tensor projected(const at::Tensor& rows, const SoftmaxBand& band, MatmulPrecision precision) {
  return band.projection.defined() ? routing::linear(rows, band.projection, {}, {.precision = precision}) : rows;
}

// By the sums of vocabulary_loss, whose order is fixed: torch cuts a long row among threads.
at::Tensor row_log_sum_exp(const at::Tensor& logits) {
  const std::int64_t rows = logits.size(0);
  at::Tensor largest = at::full({rows}, -std::numeric_limits<float>::infinity(), logits.options());
  at::Tensor sum = at::zeros({rows}, at::kDouble);
  at::Tensor picked = at::empty({rows}, logits.options());
  const at::Tensor no_targets = at::full({rows}, -1, at::kLong);
  kernels::add_panel(logits.data_ptr<float>(), {.num_rows = rows, .first_column = 0, .columns = logits.size(1)},
                     no_targets.data_ptr<std::int64_t>(), {largest.data_ptr<float>(), sum.data_ptr<double>()},
                     picked.data_ptr<float>());
  return (sum.log() + largest.to(at::kDouble)).to(at::kFloat);
}

class LogSoftmaxFunction : public torch::autograd::Function<LogSoftmaxFunction> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& logits) {
    const at::Tensor result =
        takes_dense_kernels(logits) ? logits - row_log_sum_exp(logits).unsqueeze(1) : at::log_softmax(logits, 1);
    context->save_for_backward({result});
    return result;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    refuse_second_derivative("adaptive_log_probabilities");
    const at::Tensor result = context->get_saved_variables()[0];
    const at::Tensor& d = gradients[0];
    return {d - result.exp() * d.sum(1, /*keepdim=*/true)};
  }
};

}  // namespace

at::Tensor adaptive_softmax_loss(const at::Tensor& hidden, std::span<const SoftmaxBand> bands,
                                 const at::Tensor& targets, const VocabularyLossOptions& options) {
  require<InputError>(hidden.dim() == 2, "adaptive softmax: hidden is ", hidden.sizes(), ", but must be [rows, width]");
  check_bands(bands, hidden.size(1));
  if (bands.size() == 1) {
    return vocabulary_loss(hidden, bands.front().table, bands.front().bias, targets, options);
  }
  require<InputError>(targets.scalar_type() == at::kLong && targets.dim() == 1 && targets.size(0) == hidden.size(0) &&
                          !targets.is_meta(),
                      "adaptive softmax: targets are ", targets.scalar_type(), " ", targets.sizes(), " on ",
                      targets.device().str(), ", but must be Long [", hidden.size(0), "] with values");
  const TargetsByBand by_band = targets_by_band(bands, targets);
  const auto as_tensor = [&](const std::vector<std::int64_t>& numbers) {
    return at::tensor(numbers, at::kLong).to(hidden.device());
  };
  const at::Tensor first =
      vocabulary_loss(hidden, bands.front().table, bands.front().bias, as_tensor(by_band.first), options);
  std::vector<at::Tensor> further;
  for (std::size_t index = 1; index < bands.size(); ++index) {
    const at::Tensor rows = routing::embedding(as_tensor(by_band.rows[index - 1]), hidden);
    further.push_back(vocabulary_loss(projected(rows, bands[index], options.precision), bands[index].table,
                                      bands[index].bias, as_tensor(by_band.targets[index - 1]), options));
  }
  further.push_back(at::zeros({1}, hidden.options().requires_grad(false)));  // of rows that no further band has
  const at::Tensor inside = routing::embedding(as_tensor(by_band.places), at::cat(further, 0).unsqueeze(1));
  return first + inside.squeeze(1);
}

at::Tensor adaptive_log_probabilities(const at::Tensor& hidden, std::span<const SoftmaxBand> bands,
                                      MatmulPrecision precision) {
  check_bands(bands, hidden.size(-1));
  const at::Tensor rows = hidden.reshape({-1, hidden.size(-1)});
  std::vector<at::Tensor> parts;
  at::Tensor symbols;
  for (std::size_t index = 0; index < bands.size(); ++index) {
    const SoftmaxBand& band = bands[index];
    const at::Tensor logits =
        routing::linear(projected(rows, band, precision), band.table, band.bias, {.precision = precision});
    const at::Tensor inside = LogSoftmaxFunction::apply(logits);
    if (index == 0) {
      const std::int64_t words = words_of(bands, 0);
      symbols = inside.narrow(1, words, inside.size(1) - words);
      parts.push_back(inside.narrow(1, 0, words));
    } else {
      parts.push_back(inside + symbols.narrow(1, static_cast<std::int64_t>(index) - 1, 1));
    }
  }
  std::vector<std::int64_t> sizes = hidden.sizes().vec();
  const at::Tensor all = at::cat(parts, 1);
  sizes.back() = all.size(1);
  return all.view(sizes);
}

}  // namespace routing
