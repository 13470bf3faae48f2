// A model in evaluation mode for a while.
#pragma once

#include "routing/model/sequence_model.h"

namespace routing {

// Back to the mode the model was in, whatever happens.
class EvaluationMode {
 public:
  explicit EvaluationMode(SequenceModel& model) : model_(model), was_training_(model.is_training()) { model.eval(); }
  ~EvaluationMode() { model_.train(was_training_); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  SequenceModel& model_;
  bool was_training_;
};

}  // namespace routing
