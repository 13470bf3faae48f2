// `routing eval --by-position`: every file of --data as one sequence, and what tokens cost by where they stand in it,
// of one run or of two.
#pragma once

#include "eval/eval_run.h"
#include "lab/texts/position_report.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace routing {

// What was found of a run, and of the one that it is compared with, if any.
struct PositionResult {
  std::vector<SequencePositions> sequences = {};
  std::filesystem::path against = {};  // empty: alone
  std::string other_validity = {};
  std::vector<SequencePositions> other_sequences = {};
};

// One window for each path of --data, or for the part of the run's own data; what all of them cost together goes to
// `likelihood`. `against` is a model's file, or empty.
PositionResult evaluate_by_position(const EvalOptions& options, const std::filesystem::path& model,
                                    const std::filesystem::path& against, TrainingDisplay& display,
                                    const EvalRank& rank, Likelihood& likelihood);

void print_positions(const PositionResult& result, TokenKind kind);
// For "positions" of the JSON.
nlohmann::ordered_json positions_json(const PositionResult& result, TokenKind kind);

}  // namespace routing
