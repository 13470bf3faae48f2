#include "routing/training/training_ranks.h"

#include "routing/config/keys.h"
#include "routing/core/error.h"
#include "routing/core/parallel.h"
#include "routing/data/batches.h"
#include "routing/distributed/state_check.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <set>
#include <sstream>
#include <unistd.h>
#include <utility>

namespace routing {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown host";
}

// Where data lie may differ from machine to machine; what they are may not.
const std::set<std::string> kMayDiffer{"name", "source", "data.path", "data.vocabulary", "data.cache"};

nlohmann::ordered_json identity_of(const ExperimentConfig& config, const TrainerState& state) {
  nlohmann::ordered_json identity;
  for (const std::string& key : experiment_keys()) {
    if (!kMayDiffer.contains(key)) identity[key] = get_key(config, key);
  }
  identity["tokens of the training data"] = std::to_string(state.data_tokens);
  identity["hash of the training data"] = state.data_hash;
  identity["hash of the vocabulary"] = state.tokenizer_hash;
  identity["version of the program"] = state.version;
  return identity;
}

}  // namespace

void require_same_everywhere(RankGroup& group, const ExperimentConfig& config, const TrainerState& state) {
  const std::vector<std::string> texts = group.gather_texts(identity_of(config, state).dump());
  const auto first = nlohmann::ordered_json::parse(texts.front());
  for (std::size_t rank = 1; rank < texts.size(); ++rank) {
    const auto other = nlohmann::ordered_json::parse(texts[rank]);
    for (const auto& [key, value] : first.items()) {
      const std::string theirs = other.value(key, std::string("not there"));
      require<ConfigError>(value == theirs, "rank ", rank, " is not of the same run: ", key, " is ", theirs, ", but ",
                           value.get<std::string>(), " on rank 0; give all ranks the same configuration and data");
    }
  }
}

TrainingRanks::TrainingRanks(Learner& learner, Options options) : learner_(learner), options_(options) {}

TrainingRanks::~TrainingRanks() {
  if (trace_) group().set_trace(nullptr);
}

void TrainingRanks::begin(const ExperimentConfig& config, const std::filesystem::path& run, std::int64_t step) {
  const RowRange rows = rows_of_rank(config.train.batch_size, learner_.data_rank(), learner_.data_ranks());
  facts_ = {.ranks = group().size(), .rows = rows.count, .all_rows = config.train.batch_size};
  facts_.optimizer_bytes = facts_.all_optimizer_bytes = learner_.optimizer_bytes();
  log_path_ = rank_log_path(run, group().rank());
  logged_step_ = step;
  if (options_.trace_steps > 0) {
    trace_ = std::make_unique<StepTrace>(group().rank());
    group().set_trace(trace_.get());
  }
  if (group().size() > 1) {
    if (learner_.optimizer_is_sharded()) {
      const at::Tensor bytes = at::full({1}, facts_.optimizer_bytes, at::kLong);
      group().sum(bytes);
      facts_.all_optimizer_bytes = bytes.item<std::int64_t>();
    }
    log_ = std::make_unique<RankLog>(run, group().rank());
    std::ostringstream text;
    text << "rank " << group().rank() << " of " << group().size() << " on " << host_name() << ", process " << ::getpid()
         << ", " << num_threads() << " threads, rows " << rows.first << " to " << rows.first + rows.count - 1 << " of "
         << config.train.batch_size;
    if (const auto split = static_cast<int>(config.train.sequence_ranks); split > 1) {
      text << ", piece " << group().rank() % split << " of " << split << " of each";
    }
    text << ", optimiser state " << facts_.optimizer_bytes << " of " << facts_.all_optimizer_bytes
         << " bytes, after step " << step;
    note(text.str());
  }
  group().status().finish_step(step);
  check_models(step);
}

TrainingRanks::Votes TrainingRanks::vote(const Votes& own) {
  begin_step(own);
  pending_votes_->wait();
  return votes_of_step();
}

void TrainingRanks::begin_step(const Votes& own) {
  before_step_ = group().counts();
  votes_ = at::tensor({own.stop ? 1 : 0, own.time_is_up ? 1 : 0}, at::kLong);
  pending_votes_ = group().start_sum({votes_});
}

void TrainingRanks::end_step() {
  pending_votes_->wait();
  counts_.waiting_seconds += group().counts().waiting_seconds - before_step_.waiting_seconds;
  counts_.bytes_sent += group().counts().bytes_sent - before_step_.bytes_sent;
}

TrainingRanks::Votes TrainingRanks::votes_of_step() const {
  const auto* const sums = votes_.data_ptr<std::int64_t>();
  return {.stop = sums[0] > 0, .time_is_up = sums[1] > 0};
}

std::optional<RankTraffic> TrainingRanks::log_step(std::int64_t step, double loss_nats, const StepClock& clock) {
  if (group().size() == 1) return std::nullopt;
  const auto steps = static_cast<double>(std::max<std::int64_t>(1, step - logged_step_));
  const double waited = counts_.waiting_seconds - logged_counts_.waiting_seconds;
  const double stepped = std::max(1e-9, clock.step_seconds() - logged_seconds_);
  const double bytes = static_cast<double>(counts_.bytes_sent - logged_counts_.bytes_sent) / steps;
  logged_counts_ = counts_;
  logged_seconds_ = clock.step_seconds();
  logged_step_ = step;
  std::ostringstream text;
  text << "step " << step << ": loss " << loss_nats << " nats per token, " << 1000.0 * stepped / steps
       << " ms per step, of which " << 1000.0 * waited / steps << " waiting, " << bytes << " bytes sent per step";
  note(text.str());
  return RankTraffic{.ranks = group().size(), .waiting_share = waited / stepped, .bytes_sent_per_step = bytes};
}

void TrainingRanks::note(const std::string& text) {
  if (log_) log_->write(text);
}

void TrainingRanks::check_models(std::int64_t step) {
  check_same_model(group(), learner_.model(), step);
}

void TrainingRanks::finish_step(std::int64_t step, const StepClock& clock) {
  if (step % options_.check_every == 0) check_models(step);
  if (clock.steps() >= options_.trace_steps) end_trace();
}

void TrainingRanks::end_trace() {
  if (!trace_) return;
  group().set_trace(nullptr);
  std::filesystem::create_directories(log_path_.parent_path());
  trace_->write(log_path_.parent_path() / ("trace-" + log_path_.stem().string() + ".json"));
  trace_.reset();
}

}  // namespace routing
