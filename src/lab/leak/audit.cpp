#include "lab/leak/audit.h"

#include "routing/core/error.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <sstream>

namespace routing {
namespace {

constexpr const char* kCausal = "causal";
constexpr const char* kLeaks = "selection reads the future: not a valid likelihood";
// Of logits in memory at once, beside those of the unchanged sequence.
constexpr std::int64_t kLogitBytes = std::int64_t{256} << 20U;
constexpr std::int64_t kMostSequences = 8;

std::int64_t sequences_at_once(std::int64_t tokens, std::int64_t vocabulary) {
  const std::int64_t bytes = tokens * vocabulary * static_cast<std::int64_t>(sizeof(float));
  return std::clamp<std::int64_t>(kLogitBytes / bytes, 1, kMostSequences);
}

// The model of the request as a function of its targets.
at::Tensor logits_of(const AuditRequest& request, const at::Tensor& tokens) {
  const at::NoGradGuard no_gradient;
  TokenBatch batch{.tokens = tokens};
  if (request.model->reads_source()) {
    batch.source = request.source.unsqueeze(0).expand({tokens.size(0), -1}).contiguous();
  }
  // One identity for all: random heads would draw other keys for another sequence.
  return request.model->logits(batch,
                               {.sample_ids = at::zeros({tokens.size(0)}, at::kLong), .precision = request.precision});
}

std::vector<PlanLeak> origin_of(const AuditRequest& request, const PrefixChange& change) {
  const std::int64_t sequences = request.tokens.size(0);
  const at::Tensor before = request.tokens[change.sequence];
  const at::Tensor after = with_other_future(before, {.change = change.change,
                                                      .first = change.first_changed,
                                                      .vocab_size = request.model->config().model.vocab_size,
                                                      .seed = request.seed,
                                                      .other = request.tokens[(change.sequence + 1) % sequences]});
  logits_of(request, at::stack({before, after}));
  std::vector<AttentionConfig> layers;
  for (std::int64_t layer = 0; layer < request.model->config().model.layers; ++layer) {
    layers.push_back(attention_of_layer(request.model->config(), layer));
  }
  return first_plan_leaks(request.model->states(), layers, change.first_changed);
}

void run_tasks(const AuditRequest& request, AuditReport& report) {
  for (const LeakTaskCase& each : audit_tasks()) {
    for (std::int64_t number = 0; number < request.task_seeds; ++number) {
      const std::uint64_t seed = request.seed + static_cast<std::uint64_t>(number);
      const std::string what = std::string(to_string(each.task)) + ", seed " + std::to_string(seed) + ": step";
      report.tasks.push_back(
          run_leak_task(request.model->config(), {.task = each.task,
                                                  .sizes = each.sizes,
                                                  .seed = seed,
                                                  .progress = [&](std::int64_t step, std::int64_t steps) {
                                                    if (request.progress) request.progress(what, step, steps);
                                                  }}));
    }
  }
}

std::string percent(std::int64_t part, std::int64_t whole) {
  const auto share = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  return fmt::format("{:.{}f} %", share, share < 1.0 ? 1 : 0);
}

nlohmann::ordered_json finite(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json("infinity");
}

nlohmann::ordered_json prefix_json(const PrefixReport& prefix) {
  nlohmann::ordered_json kinds = nlohmann::ordered_json::object();
  for (const FutureChange kind : kEvery<FutureChange>) {
    PrefixReport part = prefix;
    std::erase_if(part.changes, [&](const PrefixChange& each) { return each.change != kind; });
    kinds[std::string(to_string(kind))] = {{"changes", part.changes.size()},
                                           {"rows_checked", part.rows_checked()},
                                           {"rows_changed", part.rows_changed()},
                                           {"largest", finite(part.largest())}};
  }
  return {{"causal", prefix.causal()},
          {"tokens", prefix.tokens},
          {"sequences", prefix.sequences},
          {"positions", prefix.positions},
          {"rows_checked", prefix.rows_checked()},
          {"rows_changed", prefix.rows_changed()},
          {"largest", finite(prefix.largest())},
          {"changes", kinds}};
}

nlohmann::ordered_json task_json(const LeakTaskResult& task) {
  return {{"task", to_string(task.task)},
          {"seed", task.seed},
          {"nats", task.nats},
          {"half_width_95", task.half_width},
          {"floor", task.floor},
          {"leaks", task.leaks()},
          {"tokens", task.sizes.tokens},
          {"clusters", task.sizes.clusters},
          {"window", task.sizes.window},
          {"width", task.sizes.width},
          {"steps", task.sizes.steps},
          {"batch_size", task.sizes.batch_size},
          {"held_out_sequences", task.sizes.held_out},
          {"seconds", task.seconds}};
}

}  // namespace

std::string AuditReport::verdict() const {
  return causal() ? kCausal : kLeaks;
}

AuditReport run_audit(const AuditRequest& request) {
  require<InputError>(request.model != nullptr && request.tokens.dim() == 2, "audit: a model and tokens ",
                      "[sequences, n] are needed");
  const ExperimentConfig& config = request.model->config();
  request.model->eval();
  require<InputError>(!request.model->reads_source() || request.source.defined(),
                      "audit: the model reads a source, but none is given; set AuditRequest::source");
  AuditReport report{.name = config.name, .label = validity_label(config), .precision = request.precision};
  report.prefix =
      check_prefix_invariance([&](const at::Tensor& tokens) { return logits_of(request, tokens); }, request.tokens,
                              {.vocab_size = config.model.vocab_size,
                               .positions = request.positions,
                               .seed = request.seed,
                               .batch_size = sequences_at_once(request.tokens.size(1), config.model.vocab_size),
                               .progress = [&](std::int64_t pass, std::int64_t passes) {
                                 if (request.progress) request.progress("pass", pass, passes);
                               }});
  if (const PrefixChange* worst = report.prefix.worst()) report.origin = origin_of(request, *worst);
  report.parity =
      decode_parity(request.model, request.tokens[0],
                    {.precision = request.precision, .positions = request.parity_positions, .source = request.source});
  run_tasks(request, report);
  return report;
}

std::string summary(const AuditReport& report) {
  const PrefixReport& prefix = report.prefix;
  std::ostringstream text;
  text << report.verdict() << ": " << prefix.rows_changed() << " of " << prefix.rows_checked()
       << " predictions changed with tokens after them";
  if (!report.causal()) text << ", by up to " << prefix.largest();
  return text.str();
}

std::string origin_text(const AuditReport& report) {
  if (report.causal()) return "";
  if (report.origin.empty()) return "no plan of any head changed; the leak is outside the choice of keys";
  std::string heads;
  std::int64_t queries = 0;
  std::int64_t later = 0;
  for (const PlanLeak& leak : report.origin) {
    heads += (heads.empty() ? "" : ", ") + std::to_string(leak.head);
    queries = std::max(queries, leak.queries);
    later = std::max(later, leak.later_keys);
  }
  const PlanLeak& first = report.origin.front();
  std::string text = "layer " + std::to_string(first.layer) + (report.origin.size() == 1 ? ", head " : ", heads ") +
                     heads + " (" + first.pattern + ")";
  if (queries > 0) {
    text += ": up to " + percent(queries, first.queries_checked) + " of " + std::to_string(first.queries_checked) +
            " earlier queries read other keys";
  }
  if (later > 0) text += "; up to " + std::to_string(later) + " queries read a key after themselves";
  return text;
}

std::string audit_note(const AuditReport& report, const AuditStamp& stamp) {
  return report.verdict() + "; " + std::to_string(report.prefix.positions) + " positions in " +
         std::to_string(report.prefix.sequences) + " sequences of " + std::to_string(report.prefix.tokens) +
         " tokens; " + stamp.date + "; routing " + stamp.version;
}

nlohmann::ordered_json to_json(const AuditReport& report) {
  nlohmann::ordered_json origin = nlohmann::ordered_json::array();
  for (const PlanLeak& leak : report.origin) {
    origin.push_back({{"layer", leak.layer},
                      {"head", leak.head},
                      {"pattern", leak.pattern},
                      {"queries_with_other_keys", leak.queries},
                      {"queries_with_later_keys", leak.later_keys},
                      {"queries_checked", leak.queries_checked}});
  }
  nlohmann::ordered_json tasks = nlohmann::ordered_json::array();
  for (const LeakTaskResult& task : report.tasks) tasks.push_back(task_json(task));
  nlohmann::ordered_json parity{{"cached", report.parity.reason.empty()}};
  if (report.parity.reason.empty()) {
    parity["exact"] = report.parity.exact();
    parity["positions"] = report.parity.positions;
    parity["prompt_tokens"] = report.parity.prompt_tokens;
    parity["rows_changed"] = report.parity.rows_changed;
    parity["largest"] = finite(report.parity.largest);
  } else {
    parity["reason"] = report.parity.reason;
  }
  return {{"name", report.name},
          {"verdict", report.verdict()},
          {"causal", report.causal()},
          {"validity", report.label},
          {"contradicts_validity", report.contradicts_label()},
          {"precision", report.precision == MatmulPrecision::bf16 ? "bf16" : "fp32"},
          {"prefix_invariance", prefix_json(report.prefix)},
          {"origin", origin},
          {"decode_parity", parity},
          {"tasks", tasks}};
}

}  // namespace routing
