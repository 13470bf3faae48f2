#include "lab/leak/audit.h"

#include "routing/core/error.h"
#include "support/message_of.h"
#include "support/small_experiment.h"

#include <gtest/gtest.h>

#include <string>

namespace routing::audit_test {
namespace {

AuditReport audit_of(const ExperimentConfig& config, const at::Tensor& source = {}) {
  return run_audit({.model = make_model(config, at::TensorOptions().dtype(at::kFloat)),
                    .tokens = random_tokens(2, 64, config.model.vocab_size, 7),
                    .source = source,
                    .positions = 10,
                    .task_seeds = 0,
                    .parity_positions = 20});
}

TEST(Audit, TheVerdictIsWhatEveryConfigurationPromises) {
  for (const ContentCase& each : content_cases()) {
    const AuditReport report = audit_of(each.config);
    const bool causal = each.name != "balanced";
    EXPECT_EQ(report.causal(), causal) << each.name;
    EXPECT_EQ(report.verdict(), causal ? "causal" : "selection reads the future: not a valid likelihood");
    EXPECT_FALSE(report.contradicts_label()) << each.name;
    EXPECT_EQ(report.origin.empty(), causal);
    EXPECT_EQ(origin_text(report).empty(), causal);
    EXPECT_EQ(report.parity.reason.empty(), causal && each.name != "random");
    EXPECT_EQ(report.prefix.positions, 10);
    EXPECT_TRUE(report.tasks.empty());
  }
}

TEST(Audit, EncoderDecodersAreJudgedByTheirTargets) {
  for (const ContentCase& each : pairs_cases()) {
    const AuditReport report = audit_of(each.config, random_tokens(1, 24, 40, 2)[0]);
    EXPECT_EQ(report.verdict() == "causal", report.label == "causal") << each.name;
  }
  EXPECT_NE(message_of<InputError>([] { audit_of(small_pairs_experiment("full")); }).find("reads a source"),
            std::string::npos);
}

TEST(Audit, TextsAndJsonSayWhatWasFound) {
  AuditReport report{.name = "toy", .label = "causal"};
  report.prefix = {.tokens = 100, .sequences = 2, .positions = 3};
  report.prefix.changes = {{.change = FutureChange::drawn, .first_changed = 9},
                           {.change = FutureChange::last, .first_changed = 98}};
  EXPECT_EQ(summary(report), "causal: 0 of 109 predictions changed with tokens after them");
  EXPECT_EQ(origin_text(report), "");
  EXPECT_EQ(audit_note(report, {.date = "2026-01-02", .version = "0.1"}),
            "causal; 3 positions in 2 sequences of 100 tokens; 2026-01-02; routing 0.1");
  EXPECT_FALSE(report.contradicts_label());

  report.prefix.changes[1].rows_changed = 5;
  report.prefix.changes[1].largest = 0.25;
  EXPECT_EQ(summary(report),
            "selection reads the future: not a valid likelihood: 5 of 109 predictions changed with tokens after "
            "them, by up to 0.25");
  EXPECT_TRUE(report.contradicts_label());
  EXPECT_EQ(origin_text(report), "no plan of any head changed; the leak is outside the choice of keys");
  report.origin = {{.layer = 1, .head = 2, .pattern = "routing", .queries = 3, .queries_checked = 10},
                   {.layer = 1, .head = 3, .pattern = "routing", .queries = 5, .later_keys = 4, .queries_checked = 10}};
  EXPECT_EQ(origin_text(report),
            "layer 1, heads 2, 3 (routing): up to 50 % of 10 earlier queries read other keys; up to 4 queries read a "
            "key after themselves");
  report.tasks = {{.task = LeakTask::secret, .nats = 2.0, .half_width = 0.1, .floor = 2.7}};
  const nlohmann::ordered_json json = to_json(report);
  EXPECT_EQ(json["verdict"], "selection reads the future: not a valid likelihood");
  EXPECT_EQ(json["causal"], false);
  EXPECT_EQ(json["contradicts_validity"], true);
  EXPECT_EQ(json["prefix_invariance"]["changes"]["last"]["rows_changed"], 5);
  EXPECT_EQ(json["prefix_invariance"]["changes"]["drawn"]["rows_changed"], 0);
  EXPECT_EQ(json["prefix_invariance"]["rows_checked"], 109);
  EXPECT_EQ(json["origin"][1]["queries_with_later_keys"], 4);
  EXPECT_EQ(json["tasks"][0]["task"], "secret");
  EXPECT_EQ(json["tasks"][0]["leaks"], true);
  EXPECT_EQ(json["decode_parity"]["cached"], true);
}

}  // namespace
}  // namespace routing::audit_test
