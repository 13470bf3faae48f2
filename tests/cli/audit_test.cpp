// routing audit as a user runs it: verdict, JSON, the note in the model file, and who prints it.
#include "cli/generate_fixture.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>

namespace routing::audit_test {
namespace {

class CliAudit : public CliGenerate {
 protected:
  nlohmann::json json_of(const std::string& arguments) const {
    const Outcome outcome = run(arguments + " --json --quiet");
    EXPECT_EQ(outcome.exit_code, 0) << arguments << "\n" << outcome.err;
    return nlohmann::json::parse(outcome.out);
  }
};

TEST_F(CliAudit, ACausalRunIsCalledSoInItsFileAndByEvalAndInfo) {
  train_on_bytes(20);
  const std::string eval = "eval run --limit-tokens 96";
  EXPECT_EQ(json_of(eval)["audit"], "not audited");
  EXPECT_TRUE(contains(run(eval + " --quiet").out, "not audited"));
  EXPECT_TRUE(contains(run("info run").out, "causal; audit: not audited"));

  EXPECT_EQ(json_of("audit run --quick --positions 6 --no-write")["written"], false);
  EXPECT_EQ(json_of(eval)["audit"], "not audited");

  const double before = json_of(eval)["eval_loss_nats"];
  const nlohmann::json audit = json_of("audit run --quick --positions 6 --seed 3");
  EXPECT_EQ(audit["verdict"], "causal");
  EXPECT_EQ(audit["causal"], true);
  EXPECT_EQ(audit["contradicts_validity"], false);
  EXPECT_EQ(audit["written"], true);
  EXPECT_EQ(audit["prefix_invariance"]["positions"], 6);
  EXPECT_EQ(audit["prefix_invariance"]["tokens"], 48);
  EXPECT_EQ(audit["prefix_invariance"]["rows_changed"], 0);
  EXPECT_EQ(audit["decode_parity"]["exact"], true);
  EXPECT_TRUE(contains(audit["tokens_from"], "the valid part of "));
  EXPECT_TRUE(audit["tasks"].empty());
  const std::string note = audit["audit"];
  EXPECT_EQ(note.rfind("causal; 6 positions in 2 sequences of 48 tokens; 20", 0), 0U) << note;
  EXPECT_EQ(json_of(eval)["audit"], note);
  EXPECT_EQ(json_of(eval)["eval_loss_nats"], before) << "the weights are untouched";
  EXPECT_TRUE(contains(run(eval + " --quiet").out, note));
  EXPECT_EQ(json_of("info run")["audit"], note);
  EXPECT_TRUE(contains(run("info run").out, note));
}

TEST_F(CliAudit, ABalancedRunIsFoundOutAndTheExitCodeIsStillZero) {
  train_on_bytes(20, "--set routing.selection=balanced");
  const Outcome outcome = run("audit run --quick --positions 6 --quiet");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out.rfind("selection reads the future: not a valid likelihood: ", 0), 0U) << outcome.out;
  for (const char* part : {"origin         layer 0, head", "(routing)", "later tokens drawn anew",
                           "the last token only", "decoding       no cache: "}) {
    EXPECT_TRUE(contains(outcome.out, part)) << part << " in " << outcome.out;
  }
  EXPECT_TRUE(contains(run("eval run --quiet --limit-tokens 96").out,
                       "selection reads the future: not a valid likelihood; 6 positions"));
}

TEST_F(CliAudit, APresetIsAuditedWithFreshWeightsAndOtherThingsAreRefused) {
  const nlohmann::json audit = json_of(
      "audit --preset tiny-enwik8 --set model.layers=2 --set model.width=32 --set routing.selection=balanced --quick "
      "--sequence-length 256 --positions 4");
  EXPECT_EQ(audit["causal"], false);
  EXPECT_EQ(audit["written"], false);
  EXPECT_EQ(audit["model"], "");
  EXPECT_TRUE(contains(audit["tokens_from"], "made-up tokens"));
  EXPECT_EQ(audit["prefix_invariance"]["tokens"], 256);
  expect_refused("audit", {"needs a RUN or --preset NAME"});
  expect_refused("audit somewhere --preset tiny-enwik8", {"a RUN has its configuration"});
  EXPECT_EQ(run("audit nowhere --quick").exit_code, 1);
}

}  // namespace
}  // namespace routing::audit_test
