// The causality audit: is a model's likelihood one of tokens that were not seen yet?
//
// Three looks, of which the first alone decides:
//   prefix invariance   predictions may not change when later tokens do (prefix_invariance.h)
//   trained tasks       a small model with the same attention learns sources of known entropy (leak_tasks.h)
//   decode parity       token by token the model says what it says in one pass (decode_parity.h)
#pragma once

#include "lab/leak/decode_parity.h"
#include "lab/leak/leak_tasks.h"
#include "lab/leak/plan_leak.h"
#include "lab/leak/prefix_invariance.h"
#include "routing/model/sequence_model.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace routing {

struct AuditRequest {
  std::shared_ptr<SequenceModel> model = {};
  MatmulPrecision precision = MatmulPrecision::fp32;
  at::Tensor tokens = {};       // int64 [sequences, n]: of the data, or made up; two sequences or more
  at::Tensor source = {};       // int64 [m]: what an encoder-decoder reads beside; only its targets are changed
  std::int64_t positions = 32;  // see PrefixInvarianceOptions
  std::uint64_t seed = 1;       // of positions, changes and trained tasks
  std::int64_t task_seeds = 1;  // trained tasks with seeds seed, seed + 1, …; 0 leaves them out
  std::int64_t parity_positions = 256;
  // What is being done, and how far it is.
  std::function<void(const std::string& what, std::int64_t done, std::int64_t all)> progress = {};
};

struct AuditReport {
  std::string name = {};   // of the configuration
  std::string label = {};  // what the configuration promises: validity_label()
  MatmulPrecision precision = MatmulPrecision::fp32;
  PrefixReport prefix = {};
  // Heads of the lowest layer whose plans changed, under prefix.worst(); empty if causal or if it was not a plan.
  std::vector<PlanLeak> origin = {};
  std::vector<LeakTaskResult> tasks = {};
  DecodeParity parity = {};

  bool causal() const { return prefix.causal(); }
  // "causal", or "selection reads the future: not a valid likelihood".
  std::string verdict() const;
  // The verdict is not what the configuration promises. If it promises causal, a pattern has a bug; the other way round
  // the audit tried too little.
  bool contradicts_label() const { return causal() != (label == "causal"); }
};

// Puts the model into evaluation mode. Throws an InputError where tokens or source do not fit the model.
AuditReport run_audit(const AuditRequest& request);

// One line: what the verdict rests on. "causal: 0 of 102575 predictions changed with tokens after them".
std::string summary(const AuditReport& report);
// Where a leak begins: "layer 0, heads 4, 5, 6, 7 (routing): up to 63 % of earlier queries read other keys"; empty if
// causal.
std::string origin_text(const AuditReport& report);
// For a model's metadata: "VERDICT; N positions in M sequences of n tokens; DATE; routing VERSION".
struct AuditStamp {
  std::string date = {};
  std::string version = {};
};
std::string audit_note(const AuditReport& report, const AuditStamp& stamp);
nlohmann::ordered_json to_json(const AuditReport& report);

}  // namespace routing
