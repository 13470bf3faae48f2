#include "lab/bench/decode_bench.h"

#include "lab/bench/attention_work.h"
#include "lab/measure/memory.h"
#include "lab/measure/read_rate.h"
#include "routing/core/error.h"
#include "routing/core/random.h"
#include "routing/generation/decoder.h"
#include "routing/model/sequence_model.h"
#include "routing/model/transformer.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>

namespace routing::bench {
namespace {

constexpr int kSetupPasses = 8;
constexpr int kStepsARun = 8;
constexpr int kSlowRounds = 3;
constexpr const char* kStep = "step";
constexpr const char* kRead = "read weights";
constexpr const char* kPrefill = "prefill";
constexpr const char* kRerun = "re-run prefix";

class RandomTokens {
 public:
  explicit RandomTokens(const ExperimentConfig& config)
      : stream_(config.train.seed, "bench decode"),
        values_(static_cast<std::uint32_t>(std::min<std::int64_t>(config.model.vocab_size, 256))) {}

  std::vector<std::int32_t> next(std::int64_t count) {
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(count));
    for (std::int32_t& token : tokens) token = static_cast<std::int32_t>(stream_.below(values_));
    return tokens;
  }
  at::Tensor sequence(std::int64_t count) {
    const std::vector<std::int32_t> tokens = next(count);
    at::Tensor sequence = at::empty({1, count}, at::kLong);
    std::copy(tokens.begin(), tokens.end(), sequence.data_ptr<std::int64_t>());
    return sequence;
  }

 private:
  RandomStream stream_;
  std::uint32_t values_;
};

// One model in one precision, and everything that is timed of it.
class Decoding {
 public:
  Decoding(const DecodeBench& bench, const ExperimentConfig& config, MatmulPrecision precision)
      : precision_(precision), tokens_(config), model_(config, at::TensorOptions().dtype(at::kFloat)) {
    const std::string reason = model_->reason_against_cache();
    require<ConfigError>(reason.empty(), "bench decode: ", reason,
                         "; choose `contents` among local, full, strided, fixed, lsh, routing, span");
    set_up_centroids(config.train.sequence_length);
    decoder_ = make_decoder(model_.ptr(), {.precision = precision, .prefill_block = bench.prefill_block});
  }

  SequenceModel& model() { return *model_; }
  std::optional<double> memberships() const { return memberships_; }

  // Sequences that have read so many tokens; their numbers.
  std::vector<std::int64_t> begin(std::int64_t count, std::int64_t position) {
    std::vector<std::int64_t> sequences;
    for (std::int64_t i = 0; i < count; ++i) {
      sequences.push_back(decoder_->begin(tokens_.next(position), {.new_tokens = kStepsARun + 1, .forks = 1}).sequence);
    }
    return sequences;
  }
  void fork(const std::vector<std::int64_t>& sequences) {
    for (const std::int64_t sequence : forks_) decoder_->drop(sequence);
    forks_.clear();
    for (const std::int64_t sequence : sequences) forks_.push_back(decoder_->fork(sequence));
    // Lists that just fit are copied when they grow for the first time.
    step();
  }
  void step() { decoder_->step(forks_, tokens_.next(static_cast<std::int64_t>(forks_.size()))); }

  void prefill(std::span<const std::int32_t> prompt) { decoder_->drop(decoder_->begin(prompt).sequence); }
  void rerun(std::span<const std::int32_t> prompt) {
    const std::vector<std::int64_t> tokens(prompt.begin(), prompt.end());
    model_->next_logits(tokens, {.precision = precision_});
  }
  std::vector<std::int32_t> prompt(std::int64_t count) { return tokens_.next(count); }

 private:
  void set_up_centroids(std::int64_t length) {
    const at::NoGradGuard no_gradient;
    model_->train();
    for (int pass = 0; pass < kSetupPasses; ++pass) {
      model_->loss(tokens_.sequence(length), {.step = static_cast<std::uint64_t>(pass), .precision = precision_});
      model_->update_centroids();
    }
    model_->eval();
    model_->loss(tokens_.sequence(length), {.precision = precision_});
    double total = 0.0;
    const std::vector<LayerStatistics> layers = model_->take_evaluation_statistics();
    for (const LayerStatistics& layer : layers) total += layer.statistics.mean_memberships;
    if (!layers.empty()) memberships_ = total / static_cast<double>(layers.size());
  }

  MatmulPrecision precision_;
  RandomTokens tokens_;
  Transformer model_;
  std::unique_ptr<Decoder> decoder_;
  std::vector<std::int64_t> forks_;
  std::optional<double> memberships_;
};

ExperimentConfig config_of(const DecodeBench& bench, const std::string& content) {
  ExperimentConfig config = bench.config;
  config.attention.content = parse_word<PatternKind>(content, "attention.content");
  validate(config);
  return config;
}

struct Chosen {
  ExperimentConfig config = {};
  MatmulPrecision precision = MatmulPrecision::fp32;
};

std::vector<Chosen> chosen_models(const DecodeBench& bench) {
  require_enough_repeats(bench.runner);
  require<ConfigError>(!bench.positions.empty() && !bench.batches.empty(), "bench decode: ", bench.positions.size(),
                       " positions and ", bench.batches.size(), " batches, but each needs at least one");
  for (const std::int64_t position : bench.positions) {
    require<ConfigError>(position >= 1, "bench decode: position ", position, ", but positions count from 1");
  }
  for (const std::int64_t batch : bench.batches) {
    require<ConfigError>(batch >= 1, "bench decode: ", batch, " sequences together, but there must be at least 1");
  }
  std::vector<Chosen> chosen;
  for (const std::string& content : bench.contents) {
    for (const std::string& precision : bench.precisions) {
      chosen.push_back({config_of(bench, content), parse_word<MatmulPrecision>(precision, "precision")});
    }
  }
  return chosen;
}

Row row_of(const Chosen& chosen) {
  const ExperimentConfig& config = chosen.config;
  const bool routed = config.attention.content == PatternKind::routing;
  return {.bench = "decode",
          .pattern = std::string(to_string(config.attention.content)),
          .heads = config.attention.heads,
          .dim = head_dim(attention_of_layer(config, 0)),
          .window = std::get<LocalPattern>(config.patterns.local.pattern).window,
          .clusters = routed ? config.routing.routing().clusters : 0,
          .precision = std::string(to_string(chosen.precision))};
}

void add_subjects(const DecodeBench& bench, const Chosen& chosen, ReadProbe& probe, std::vector<Subject>& subjects) {
  const auto decoding = std::make_shared<Decoding>(bench, chosen.config, chosen.precision);
  Row row = row_of(chosen);
  const std::int64_t bytes = weight_bytes(decoding->model(), chosen.precision);
  row.memberships = decoding->memberships();
  row.bytes = static_cast<double>(bytes);
  const auto add = [&](const char* pass, Subject subject) {
    subject.row.pass = pass;
    subjects.push_back(std::move(subject));
  };
  row.tokens = 1;
  // As often in a row as steps, so that a neighbour who takes the processor for a while meets both alike.
  add(kRead, {.row = row,
              .run =
                  [&probe, bytes] {
                    for (int step = 0; step < kStepsARun; ++step) probe.read(bytes);
                  },
              .items_a_run = kStepsARun});
  for (const std::int64_t batch : bench.batches) {
    for (const std::int64_t position : bench.positions) {
      row.batch = row.tokens = batch;
      row.n = position;
      add(kStep, {.row = row,
                  .run =
                      [decoding] {
                        for (int step = 0; step < kStepsARun; ++step) decoding->step();
                      },
                  .before = [decoding, sequences = decoding->begin(batch, position)] { decoding->fork(sequences); },
                  .items_a_run = kStepsARun});
    }
  }
  if (bench.prefix == 0) return;
  row.batch = 1;
  row.n = row.tokens = bench.prefix;
  row.bytes = 0.0;
  const std::vector<std::int32_t> prompt = decoding->prompt(bench.prefix);
  const auto prefill = [decoding, prompt] { decoding->prefill(prompt); };
  // The first one makes what stays: the weights as products like them, and buffers of threads.
  prefill();
  row.peak_bytes = peak_bytes_above(resident_bytes(), prefill);
  add(kPrefill, {.row = row, .run = prefill, .most_rounds = kSlowRounds});
  row.peak_bytes = std::nullopt;
  add(kRerun, {.row = row, .run = [decoding, prompt] { decoding->rerun(prompt); }, .most_rounds = kSlowRounds});
}

// The row of the same model with this pass; null if there is none.
const Row* row_with(const std::vector<Row>& rows, const Row& like, const char* pass) {
  return find_row(rows, [&](const Row& row) {
    return row.pattern == like.pattern && row.precision == like.precision && row.pass == pass;
  });
}

// Of the steps of the same model and number of sequences, that at the largest position.
const Row* last_step(const std::vector<Row>& rows, const Row& like) {
  const Row* last = nullptr;
  for (const Row& row : rows) {
    const bool same = row.pattern == like.pattern && row.precision == like.precision && row.batch == like.batch;
    if (same && row.pass == kStep && (last == nullptr || row.n > last->n)) last = &row;
  }
  return last;
}

}  // namespace

std::int64_t weight_bytes(const SequenceModel& model, MatmulPrecision precision) {
  const std::int64_t of_matrices = precision == MatmulPrecision::bf16 ? 2 : 4;
  std::int64_t bytes = 0;
  for (const auto& item : model.named_parameters()) {
    const at::Tensor& weight = item.value();
    const bool table = item.key() == "embedding" || item.key().starts_with("embedding_band");
    const bool places = item.key().find("position") != std::string::npos;
    const bool looked_up = places || (table && !model.config().model.tied_output);
    bytes += looked_up ? 4 * weight.size(1) : weight.numel() * (weight.dim() == 2 ? of_matrices : 4);
  }
  return bytes;
}

std::vector<Row> bench_decode(const DecodeBench& bench) {
  const std::vector<Chosen> models = chosen_models(bench);
  std::int64_t most_bytes = 0;
  for (const Chosen& chosen : models) {
    const Transformer sizes(chosen.config, at::TensorOptions().device(at::kMeta));
    most_bytes = std::max(most_bytes, weight_bytes(*sizes, chosen.precision));
  }
  ReadProbe probe(most_bytes);
  std::vector<Subject> subjects;
  for (const Chosen& chosen : models) add_subjects(bench, chosen, probe, subjects);
  std::vector<Row> rows = measure(subjects, bench.runner);
  for (Row& row : rows) {
    if (row.pass == kStep) row.ratio = row.seconds() / row_with(rows, row, kRead)->seconds();
    if (row.pass == kPrefill) row.ratio = row.seconds() / row_with(rows, row, kRerun)->seconds();
    if (row.pass == kRerun) {
      const Row* const step = row_with(rows, row, kStep);
      row.ratio = row.seconds() / last_step(rows, *step)->seconds();
    }
  }
  return rows;
}

std::vector<DecodeSummary> summarise_decoding(const std::vector<Row>& rows) {
  std::vector<DecodeSummary> summaries;
  for (const Row& row : rows) {
    if (row.pass != kStep || &row != last_step(rows, row)) continue;
    const Row* first = &row;
    for (const Row& other : rows) {
      if (other.pass == kStep && last_step(rows, other) == &row && other.n < first->n) first = &other;
    }
    const Row* const rerun = row_with(rows, row, kRerun);
    DecodeSummary summary{.content = row.pattern,
                          .precision = row.precision,
                          .batch = row.batch,
                          .first_position = first->n,
                          .last_position = row.n,
                          .last_over_first = row.seconds() / first->seconds(),
                          .step_over_read = row.ratio};
    if (rerun != nullptr) summary.rerun_over_step = rerun->seconds() / row.seconds();
    summaries.push_back(summary);
  }
  return summaries;
}

}  // namespace routing::bench
