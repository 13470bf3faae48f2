// What the loop does because there are several ranks.
#include "routing/config/keys.h"
#include "routing/core/error.h"
#include "routing/core/parallel.h"
#include "routing/data/batches.h"
#include "routing/distributed/state_check.h"
#include "routing/training/trainer.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <set>
#include <sstream>
#include <unistd.h>

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

void Trainer::require_same_everywhere() const {
  const std::vector<std::string> texts = ranks().gather_texts(identity_of(config_, state_).dump());
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

void Trainer::count_ranks() {
  const RowRange rows = rows_of_rank(config_.train.batch_size, ranks().rank(), ranks().size());
  rank_facts_ = {.ranks = ranks().size(), .rows = rows.count, .all_rows = config_.train.batch_size};
  rank_facts_.optimizer_bytes = rank_facts_.all_optimizer_bytes = learner_.optimizer_bytes();
  if (trace_steps_ > 0) {
    trace_ = std::make_unique<StepTrace>(ranks().rank());
    learner_.trace(trace_.get());
  }
  if (ranks().size() == 1) return;
  if (learner_.optimizer_is_sharded()) {
    const at::Tensor bytes = at::full({1}, rank_facts_.optimizer_bytes, at::kLong);
    ranks().sum(bytes);
    rank_facts_.all_optimizer_bytes = bytes.item<std::int64_t>();
  }
  rank_log_ = std::make_unique<RankLog>(run_.folder(), ranks().rank());
  std::ostringstream text;
  text << "rank " << ranks().rank() << " of " << ranks().size() << " on " << host_name() << ", process " << ::getpid()
       << ", " << num_threads() << " threads, rows " << rows.first << " to " << rows.first + rows.count - 1 << " of "
       << config_.train.batch_size << ", optimiser state " << rank_facts_.optimizer_bytes << " of "
       << rank_facts_.all_optimizer_bytes << " bytes, after step " << state_.step;
  rank_log_->write(text.str());
}

std::vector<std::int64_t> Trainer::own_votes() const {
  const double limit = config_.train.minutes * 60.0;
  const bool stop = observer_.stop_requested && observer_.stop_requested();
  const bool time_is_up = leads() && limit > 0.0 && seconds_before_ + seconds_of_this_part() >= limit;
  return {stop ? 1 : 0, time_is_up ? 1 : 0};
}

Trainer::Votes Trainer::votes_of(const std::vector<std::int64_t>& sums) {
  return {.stop = sums.at(0) > 0, .time_is_up = sums.at(1) > 0};
}

Trainer::Votes Trainer::votes_now() const {
  std::vector<std::int64_t> votes = own_votes();
  const at::Tensor sums = at::tensor(votes);
  ranks().sum(sums);
  return votes_of({sums.data_ptr<std::int64_t>(), sums.data_ptr<std::int64_t>() + sums.numel()});
}

void Trainer::log_ranks(nlohmann::ordered_json& line) {
  if (ranks().size() == 1) return;
  const auto steps = static_cast<double>(std::max<std::int64_t>(1, state_.step - logged_step_));
  const double waited = stepping_counts_.waiting_seconds - logged_counts_.waiting_seconds;
  const double stepped = std::max(1e-9, stepping_seconds_ - logged_seconds_);
  const double bytes = static_cast<double>(stepping_counts_.bytes_sent - logged_counts_.bytes_sent) / steps;
  line["ranks"] = ranks().size();
  line["waiting_share"] = waited / stepped;
  line["bytes_sent_per_step"] = bytes;
  logged_counts_ = stepping_counts_;
  logged_seconds_ = stepping_seconds_;
  logged_step_ = state_.step;
  std::ostringstream text;
  text << "step " << state_.step << ": loss " << line.at("train_loss_nats").get<double>() << " nats per token, "
       << 1000.0 * stepped / steps << " ms per step, of which " << 1000.0 * waited / steps << " waiting, " << bytes
       << " bytes sent per step";
  rank_log_->write(text.str());
}

void Trainer::check_ranks() {
  check_same_model(ranks(), learner_.sequence_model(), state_.step);
}

void Trainer::end_trace() {
  if (!trace_) return;
  learner_.trace(nullptr);
  const std::filesystem::path log = rank_log_path(run_.folder(), ranks().rank());
  std::filesystem::create_directories(log.parent_path());
  trace_->write(log.parent_path() / ("trace-" + log.stem().string() + ".json"));
  trace_.reset();
}

}  // namespace routing
