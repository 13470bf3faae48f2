#include "lab/bench/layers_bench.h"

#include "lab/bench/attention_work.h"
#include "lab/measure/flops.h"
#include "lab/measure/memory.h"
#include "routing/config/text/vocabulary_bands.h"
#include "routing/core/random.h"
#include "routing/ops/dense/adaptive_embedding.h"
#include "routing/ops/dense/adaptive_softmax.h"
#include "routing/ops/dense/linear.h"
#include "routing/ops/dense/vocabulary_loss.h"
#include "routing/ops/dropout.h"
#include "routing/ops/embedding.h"
#include "routing/ops/layer_norm.h"
#include "routing/ops/random_fill.h"
#include "routing/optim/adafactor.h"
#include "routing/optim/adam.h"
#include "routing/optim/gradient_norm.h"

#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <utility>

namespace routing::bench {
namespace {

constexpr double kFloatBytes = 4.0;
constexpr double kLayerNormEps = 1e-6;

// An operation: its inputs, those that want a gradient, and what it makes of them.
struct Operation {
  std::string name = {};
  MatmulPrecision precision = MatmulPrecision::fp32;
  std::vector<at::Tensor> leaves = {};  // want gradients
  std::function<at::Tensor(const std::vector<at::Tensor>&)> apply = {};
  double forward_flops = 0.0;
  double backward_flops = 0.0;
  std::int64_t pairs = 0;
};

double bytes_of(const at::Tensor& tensor) {
  return static_cast<double>(tensor.numel()) * kFloatBytes;
}

class LayerSubjects {
 public:
  explicit LayerSubjects(const LayersBench& bench) : bench_(bench) {}

  at::Tensor normal(at::IntArrayRef sizes, double deviation = 1.0) {
    at::Tensor tensor = at::empty(sizes);
    fill_normal(tensor, 0.0, deviation, RandomStream(bench_.seed, "bench layers", {drawn_++}));
    return tensor;
  }

  // A row for each pass of the operation.
  void add(const Operation& operation) {
    const std::int64_t before = resident_bytes();
    std::vector<at::Tensor> leaves;
    for (const at::Tensor& leaf : operation.leaves) leaves.push_back(leaf.detach().requires_grad_(true));
    const at::Tensor result = operation.apply(leaves);
    const at::Tensor gradient = normal(result.sizes());
    double tensors = bytes_of(result);
    for (const at::Tensor& leaf : leaves) tensors += bytes_of(leaf);
    const std::function<void()> forward = [leaves, apply = operation.apply] {
      const at::NoGradGuard no_gradients;
      apply(leaves);
    };
    const std::function<void()> backward = [leaves, result, gradient] {
      torch::autograd::grad({result}, leaves, {gradient}, /*retain_graph=*/true);
    };
    add_row(operation, {.pass = "forward", .flops = operation.forward_flops, .bytes = tensors}, forward, before);
    // Inputs and the result's gradient are read, the inputs' gradients written.
    add_row(operation,
            {.pass = "backward", .flops = operation.backward_flops, .bytes = 2.0 * tensors - bytes_of(result)},
            backward, before);
  }

  // `numbers` holds pass, flops and bytes.
  void add_row(const Operation& operation, Row numbers, const std::function<void()>& run, std::int64_t before) {
    const AttentionSizes& sizes = bench_.attention;
    const bool attention = operation.pairs > 0;
    numbers.bench = "layers";
    numbers.pattern = operation.name;
    numbers.n = sizes.n;
    numbers.batch = sizes.batch;
    numbers.precision = std::string(to_string(operation.precision));
    numbers.pairs = operation.pairs;
    if (attention) {
      numbers.heads = sizes.heads;
      numbers.dim = sizes.dim;
      numbers.window = sizes.window;
      numbers.clusters = operation.name.ends_with("local") ? 0 : sizes.clusters;
    }
    run();
    numbers.peak_bytes = peak_bytes_above(before, run);
    subjects_.push_back({.row = numbers, .run = run});
  }

  const std::vector<Subject>& subjects() const { return subjects_; }

 private:
  const LayersBench& bench_;
  std::uint64_t drawn_ = 0;
  std::vector<Subject> subjects_;
};

struct Widths {
  explicit Widths(const LayersBench& bench)
      : batch(bench.attention.batch),
        n(bench.attention.n),
        model(bench.attention.heads * bench.attention.dim),
        feedforward(bench.feedforward_width) {}
  std::int64_t batch, n, model, feedforward;
  std::int64_t rows() const { return batch * n; }
};

void add_products(const LayersBench& bench, LayerSubjects& subjects, MatmulPrecision precision) {
  const Widths w(bench);
  for (const auto& [in, out] :
       {std::pair(w.model, w.model), std::pair(w.model, w.feedforward), std::pair(w.feedforward, w.model)}) {
    const double flops = product_flops(w.rows(), in, out);
    subjects.add({.name = "linear " + std::to_string(in) + "x" + std::to_string(out),
                  .precision = precision,
                  .leaves = {subjects.normal({w.batch, w.n, in}), subjects.normal({out, in}, 0.05)},
                  .apply =
                      [precision](const auto& leaves) {
                        return routing::linear(leaves[0], leaves[1], {}, {.precision = precision});
                      },
                  .forward_flops = flops,
                  .backward_flops = 2.0 * flops});
  }
  at::Tensor targets = at::empty({w.rows()}, at::kLong);
  RandomStream stream(bench.seed, "bench targets");
  for (std::int64_t row = 0; row < w.rows(); ++row) {
    targets.data_ptr<std::int64_t>()[row] = stream.below(static_cast<std::uint32_t>(bench.vocabulary));
  }
  const double logits = product_flops(w.rows(), w.model, bench.vocabulary);
  subjects.add({.name = "vocabulary_loss",
                .precision = precision,
                .leaves = {subjects.normal({w.rows(), w.model}), subjects.normal({bench.vocabulary, w.model}, 0.05)},
                .apply =
                    [precision, targets](const auto& leaves) {
                      return vocabulary_loss(leaves[0], leaves[1], {}, targets, {.precision = precision});
                    },
                .forward_flops = logits,
                .backward_flops = 2.0 * logits});
}

// Ids of words, rank r as often as 1 / r: id = V^u - 1 for u uniform, to a good approximation.
at::Tensor words_by_frequency(const LayersBench& bench, std::int64_t count) {
  at::Tensor ids = at::empty({count}, at::kLong);
  RandomStream stream(bench.seed, "bench words");
  for (std::int64_t i = 0; i < count; ++i) {
    const double rank = std::pow(static_cast<double>(bench.vocabulary), stream.uniform());
    ids.data_ptr<std::int64_t>()[i] = std::min(static_cast<std::int64_t>(rank) - 1, bench.vocabulary - 1);
  }
  return ids;
}

void add_bands(const LayersBench& bench, LayerSubjects& subjects, MatmulPrecision precision) {
  const Widths w(bench);
  const std::vector<VocabularyBand> bands = vocabulary_bands(
      {.ends = bench.bands, .vocab_size = bench.vocabulary, .width = w.model, .factor = bench.band_factor});
  const at::Tensor words = words_by_frequency(bench, w.rows());
  // Tables, of the first band with the symbols of the others, then projections as the softmax reads them.
  std::vector<at::Tensor> weights;
  const auto further = static_cast<std::int64_t>(bands.size()) - 1;
  for (const VocabularyBand& band : bands) {
    weights.push_back(subjects.normal({band.words + (band.first == 0 ? further : 0), band.width}, 0.05));
  }
  double flops = 0.0;
  for (const VocabularyBand& band : bands) {
    if (band.first > 0) weights.push_back(subjects.normal({band.width, w.model}, 0.05));
    const std::int64_t inside = (words.ge(band.first) & words.lt(band.first + band.words)).sum().item<std::int64_t>();
    flops += band.first == 0 ? product_flops(w.rows(), w.model, band.words + further)
                             : product_flops(inside, band.width, band.words + w.model);
  }
  std::vector<at::Tensor> leaves{subjects.normal({w.rows(), w.model})};
  leaves.insert(leaves.end(), weights.begin(), weights.end());
  subjects.add({.name = "adaptive_softmax",
                .precision = precision,
                .leaves = leaves,
                .apply =
                    [precision, words, count = bands.size()](const auto& of) {
                      std::vector<SoftmaxBand> read;
                      for (std::size_t band = 0; band < count; ++band) {
                        read.push_back({.table = of[1 + band]});
                        if (band > 0) read.back().projection = of[count + band];
                      }
                      return adaptive_softmax_loss(of[0], read, words, {.precision = precision});
                    },
                .forward_flops = flops,
                .backward_flops = 2.0 * flops});
  subjects.add({.name = "adaptive_embedding",
                .precision = precision,
                .leaves = weights,
                .apply = [precision, words, bands](const auto& of) {
                  BandedTable table;
                  for (std::size_t band = 0; band < bands.size(); ++band) {
                    table.bands.push_back({.words = bands[band].words, .table = of[band]});
                    if (band > 0) table.bands.back().projection = of[bands.size() - 1 + band].t();
                  }
                  return adaptive_embedding(words, table, precision);
                }});
}

void add_elementwise(const LayersBench& bench, LayerSubjects& subjects) {
  const Widths w(bench);
  const auto precision = bench.precisions.front();
  const auto tokens = [&] { return subjects.normal({w.batch, w.n, w.model}); };
  subjects.add(
      {.name = "layer_norm",
       .precision = precision,
       .leaves = {tokens(), subjects.normal({w.model}), subjects.normal({w.model})},
       .apply = [](const auto& leaves) { return layer_norm(leaves[0], leaves[1], leaves[2], kLayerNormEps); }});
  subjects.add({.name = "dropout",
                .precision = precision,
                .leaves = {tokens()},
                .apply = [p = bench.dropout](const auto& leaves) {
                  return routing::dropout(leaves[0], {.probability = p, .key = 1});
                }});
  subjects.add(
      {.name = "residual", .precision = precision, .leaves = {tokens(), tokens()}, .apply = [](const auto& leaves) {
         return leaves[0] + leaves[1];
       }});
  at::Tensor ids = at::empty({w.batch, w.n}, at::kLong);
  RandomStream stream(bench.seed, "bench ids");
  for (std::int64_t row = 0; row < w.rows(); ++row) {
    ids.data_ptr<std::int64_t>()[row] = stream.below(static_cast<std::uint32_t>(bench.vocabulary));
  }
  subjects.add({.name = "embedding",
                .precision = precision,
                .leaves = {subjects.normal({bench.vocabulary, w.model})},
                .apply = [ids](const auto& leaves) { return routing::embedding(ids, leaves[0]); }});
}

void add_attention(const LayersBench& bench, LayerSubjects& subjects) {
  for (const std::string pattern : {"local", "threshold"}) {
    const auto work = std::make_shared<AttentionWork>(pattern, bench.attention, bench.seed);
    const auto plan = std::make_shared<Plan>(work->make_plan());
    const std::int64_t dim = bench.attention.dim;
    for (const MatmulPrecision precision : bench.precisions) {
      subjects.add(
          {.name = "attend " + pattern,
           .precision = precision,
           .leaves = work->leaves(),
           .apply = [work, plan, precision](const auto& leaves) { return work->attend_over(*plan, leaves, precision); },
           .forward_flops = attention_forward_flops(work->pairs(), dim, dim),
           .backward_flops = attention_backward_flops(work->pairs(), dim, dim),
           .pairs = work->pairs()});
    }
    if (pattern == "local") continue;
    const Operation planning{.name = "plan " + pattern, .precision = bench.precisions.front(), .pairs = work->pairs()};
    subjects.add_row(
        planning, {.pass = "plan"}, [work] { work->run(Pass::plan, MatmulPrecision::fp32); }, resident_bytes());
  }
}

// The matrices of the blocks: four of attention, two of the feed-forward layer.
void add_optimizer(const LayersBench& bench, LayerSubjects& subjects) {
  const Widths w(bench);
  auto parameters = std::make_shared<std::vector<NamedParameter>>();
  double numbers = 0.0;
  for (std::int64_t layer = 0; layer < bench.layers; ++layer) {
    for (const auto& [rows, columns] :
         {std::pair(4 * w.model, w.model), std::pair(w.feedforward, w.model), std::pair(w.model, w.feedforward)}) {
      at::Tensor value = at::full({rows, columns}, 0.01);
      value.mutable_grad() = at::full({rows, columns}, 0.001);
      numbers += static_cast<double>(value.numel());
      parameters->push_back({.name = "weight" + std::to_string(parameters->size()), .value = value});
    }
  }
  const auto adam = std::make_shared<Adam>(*parameters, AdamOptions{});
  const auto precision = bench.precisions.front();
  subjects.add_row(
      {.name = "gradient_norm", .precision = precision}, {.pass = "step", .bytes = kFloatBytes * numbers},
      [parameters] { gradient_norm(*parameters); }, resident_bytes());
  // Reads value, gradient and two moments, writes all but the gradient.
  subjects.add_row(
      {.name = "adam", .precision = precision}, {.pass = "step", .bytes = 7.0 * kFloatBytes * numbers},
      [adam] { adam->step(1e-4); }, resident_bytes());
  // Reads the gradient three times and the value twice, writes the value; moments are few.
  const auto adafactor = std::make_shared<Adafactor>(*parameters, AdafactorOptions{});
  subjects.add_row(
      {.name = "adafactor", .precision = precision}, {.pass = "step", .bytes = 6.0 * kFloatBytes * numbers},
      [adafactor] { adafactor->step(1e-4); }, resident_bytes());
}

}  // namespace

std::vector<Row> bench_layers(const LayersBench& bench) {
  require_enough_repeats(bench.runner);
  attention_heads("threshold", bench.attention);
  LayerSubjects subjects(bench);
  for (const MatmulPrecision precision : bench.precisions) {
    add_products(bench, subjects, precision);
    if (!bench.bands.empty()) add_bands(bench, subjects, precision);
  }
  add_elementwise(bench, subjects);
  add_attention(bench, subjects);
  add_optimizer(bench, subjects);
  std::vector<Row> rows = measure(subjects.subjects(), bench.runner);
  for (Row& row : rows) {
    const Row* const first = find_row(rows, [&](const Row& other) { return other.precision == row.precision; });
    row.ratio = row.seconds() / first->seconds();
  }
  return rows;
}

}  // namespace routing::bench
