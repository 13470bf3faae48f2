#include "lab/leak/decode_parity.h"

#include "lab/leak/prefix_invariance.h"
#include "routing/core/error.h"
#include "routing/generation/decoder.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace routing {
namespace {

using Ids = std::vector<std::int32_t>;

Ids ids_of(const at::Tensor& tokens) {
  const at::Tensor whole = tokens.contiguous();
  const auto* const ids = whole.data_ptr<std::int64_t>();
  Ids result(static_cast<std::size_t>(whole.numel()));
  std::transform(ids, ids + whole.numel(), result.begin(),
                 [](std::int64_t id) { return static_cast<std::int32_t>(id); });
  return result;
}

// [n, vocabulary] from one pass.
at::Tensor whole_pass(SequenceModel& model, const at::Tensor& tokens, const DecodeParityOptions& options) {
  const at::NoGradGuard no_gradient;
  require<InputError>(!model.reads_source() || options.source.defined(),
                      "decode parity: this model reads a source, but none is given; set DecodeParityOptions::source");
  TokenBatch batch{.tokens = tokens.unsqueeze(0)};
  if (model.reads_source()) batch.source = options.source.unsqueeze(0);
  return model.logits(batch, {.precision = options.precision})[0].contiguous();
}

void compare(const at::Tensor& expected, const at::Tensor& found, DecodeParity& parity) {
  const float* const before = expected.data_ptr<float>();
  const float* const after = found.data_ptr<float>();
  ++parity.positions;
  if (std::memcmp(before, after, static_cast<std::size_t>(expected.numel()) * sizeof(float)) == 0) return;
  ++parity.rows_changed;
  parity.largest = std::max(parity.largest, largest_change(before, after, expected.numel()));
}

// Reads `prompt`, then ids[first], ids[first + 1], …, and compares `count` rows from row `first` on.
struct Reading {
  Ids prompt = {};
  std::int64_t first = 0;
  std::int64_t count = 0;
};
void read(Decoder& decoder, const Reading& reading, const Ids& ids, const at::Tensor& rows, DecodeParity& parity) {
  const Decoder::Begun begun = decoder.begin(reading.prompt, {.new_tokens = reading.count});
  compare(rows[reading.first], at::tensor(begun.logits), parity);
  for (std::int64_t row = reading.first + 1; row < reading.first + reading.count; ++row) {
    const Ids next{ids[static_cast<std::size_t>(row - 1)]};
    compare(rows[row], decoder.step(std::vector<std::int64_t>{begun.sequence}, next)[0].contiguous(), parity);
  }
  decoder.drop(begun.sequence);
}

}  // namespace

DecodeParity decode_parity(const std::shared_ptr<SequenceModel>& model, const at::Tensor& tokens,
                           const DecodeParityOptions& options) {
  require<InputError>(tokens.dim() == 1 && tokens.numel() > 0 && options.positions > 0, "decode parity: tokens ",
                      tokens.sizes(), " and ", options.positions,
                      " positions, but it takes some tokens of one sequence");
  const auto decoder = make_decoder(model, {.precision = options.precision});
  DecodeParity parity{.reason = decoder->reason()};
  if (!parity.reason.empty()) return parity;
  const at::Tensor rows = whole_pass(*model, tokens, options);
  const Ids ids = ids_of(tokens);
  const std::int64_t n = tokens.numel();
  if (decoder->reads_source()) {
    read(*decoder, {.prompt = ids_of(options.source), .count = std::min(n, options.positions)}, ids, rows, parity);
    return parity;
  }
  const std::int64_t from_start = std::min(n, (options.positions + 1) / 2);
  read(*decoder, {.count = from_start}, ids, rows, parity);
  const std::int64_t behind = std::min(n - 1, options.positions - from_start);
  if (behind < 1) return parity;
  parity.prompt_tokens = n - behind;
  const Ids prompt(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(parity.prompt_tokens));
  read(*decoder, {.prompt = prompt, .first = parity.prompt_tokens, .count = behind}, ids, rows, parity);
  return parity;
}

}  // namespace routing
