// How many answers of the recall task (data/tasks/recall_task.h) a model gets right, by how far back the fact stands.
#pragma once

#include "routing/data/tasks/recall_task.h"
#include "routing/distributed/group/rank_group.h"
#include "routing/model/sequence_model.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace routing {

// Answers whose facts are from … to tokens back.
struct DistanceScore {
  std::int64_t from = 0;
  std::int64_t to = 0;  // both included
  std::int64_t answers = 0;
  std::int64_t right = 0;  // where the largest logit is the answer's
  double nats = 0.0;       // of the answers, summed; 0 is possible
  double accuracy() const { return answers == 0 ? 0.0 : static_cast<double>(right) / static_cast<double>(answers); }
};

struct RecallScore {
  std::int64_t tokens = 0;
  double nats = 0.0;                          // of all tokens, summed
  double least_nats = 0.0;                    // of a reader with perfect memory
  std::vector<DistanceScore> distances = {};  // octaves: 1, 2-3, 4-7, 8-15, …
  double chance = 0.0;                        // 1 / values
  std::int64_t answers() const;
  // Of all answers, or of those whose facts are at least so far back (by whole octaves; 0 answers: 0).
  double accuracy(std::int64_t beyond = 1) const;
};

struct RecallToScore {
  std::string_view part = "valid";
  std::int64_t sequences = 32;  // the first so many
  std::int64_t length = 4096;
  std::int64_t batch_size = 4;
  MatmulPrecision precision = MatmulPrecision::fp32;
  RankGroup* ranks = nullptr;  // batches go round the ranks, and each gets the score of all; nothing means alone
};
// In evaluation mode; the model is left in the mode it was in.
RecallScore score_recall(SequenceModel& model, const RecallTask& task, const RecallToScore& which);

// The octave of a distance >= 1: 0 for 1, 1 for 2 and 3, ….
std::int64_t octave_of(std::int64_t distance);

// The sequences of one batch as tokens [rows, length]; the sequences themselves go to `sequences` if it is not null.
at::Tensor recall_tokens(const RecallTask& task, std::string_view part, std::int64_t first, at::IntArrayRef shape,
                         std::vector<RecallSequence>* sequences = nullptr);

}  // namespace routing
