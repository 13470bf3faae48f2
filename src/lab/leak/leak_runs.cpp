#include "lab/leak/leak_runs.h"

#include "routing/core/error.h"
#include "routing/model/weights.h"
#include "routing/training/learner.h"

#include <set>
#include <utility>

namespace routing {
namespace {

namespace fs = std::filesystem;

// What differs beside the selection would count as gain.
void require_trained_alike(const LeakJob& job) {
  const fs::path& first_path = job.models.front();
  const ExperimentConfig first = load_model_config(first_path);
  std::set<std::pair<std::string, std::uint64_t>> names;
  for (const fs::path& path : job.models) {
    const ExperimentConfig config = load_model_config(path);
    require<ConfigError>(names.emplace(selection_label(config), config.train.seed).second, path.string(), ": is ",
                         selection_label(config), " of seed ", config.train.seed,
                         ", but so is another one; leave out one of the two");
    const auto require_same = [&](const char* what, std::int64_t own, std::int64_t wanted) {
      require<ConfigError>(own == wanted, path.string(), ": ", what, " is ", own, ", but ", wanted, " in ",
                           first_path.string(), "; compare models that were trained alike");
    };
    require_same("train.sequence_length", config.train.sequence_length, first.train.sequence_length);
    require_same("train.steps", config.train.steps, first.train.steps);
    require_same("train.batch_size", config.train.batch_size, first.train.batch_size);
    require_same("train.accumulation", config.train.accumulation, first.train.accumulation);
    require<ConfigError>(config.model == first.model, path.string(), ": its [model] differs from that of ",
                         first_path.string(), "; compare models that differ in their attention only");
  }
}

void require_same_tokens(const fs::path& path, const Dataset& data) {
  const std::string learned = load_model_notes(path).tokenizer_hash;
  require<ConfigError>(learned.empty() || learned == data.facts().tokenizer_hash, data.path().string(),
                       ": its tokens are those of vocabulary ", data.facts().tokenizer_hash, ", but ", path.string(),
                       " learned those of ", learned, "; compare models that were trained on the same data");
}

}  // namespace

std::vector<LeakRun> measure_leak_of_models(const LeakJob& job, const Dataset& data) {
  require<ConfigError>(!job.models.empty(), "leak: there are no models, but at least 1 is needed");
  require_trained_alike(job);
  for (const fs::path& path : job.models) require_same_tokens(path, data);
  const DatasetPart& part = data.part(job.part);
  std::vector<LeakRun> runs;
  for (const fs::path& path : job.models) {
    Transformer model = load_model(path);
    const ExperimentConfig config = fitted_to(model->config(), data.facts());
    PrefixLikelihoodOptions options{.sampling = {.sequence_length = config.train.sequence_length,
                                                 .windows = job.windows,
                                                 .positions = job.positions,
                                                 .seed = job.seed,
                                                 .record_length = data.facts().record_length()},
                                    .checks = job.checks,
                                    .check_all = job.check_all,
                                    .precision = job.precision.value_or(matmul_precision(config.train.precision))};
    const std::string name = selection_label(config) + ", seed " + std::to_string(config.train.seed);
    if (job.progress) {
      options.progress = [&](std::int64_t done, std::int64_t all) { job.progress(name, done, all); };
    }
    runs.push_back(measure_leak(*model, part.tokens, options));
  }
  return runs;
}

}  // namespace routing
