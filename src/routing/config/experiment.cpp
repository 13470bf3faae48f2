#include "routing/config/experiment.h"

#include "routing/config/words.h"

namespace routing {

std::string_view to_string(NormPlacement norm) {
  return norm == NormPlacement::post ? "post" : "pre";
}

std::string_view to_string(FeedforwardKind kind) {
  return kind == FeedforwardKind::relu ? "relu" : "geglu";
}

std::string_view to_string(OptimizerKind kind) {
  return kind == OptimizerKind::adam ? "adam" : "adamw";
}

std::string_view to_string(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::constant:
      return "constant";
    case ScheduleKind::vaswani:
      return "vaswani";
    case ScheduleKind::cosine:
      return "cosine";
    case ScheduleKind::rsqrt:
      return "rsqrt";
  }
  return "";
}

std::string_view to_string(DataOrder order) {
  return order == DataOrder::crops ? "crops" : "contiguous";
}

std::string_view to_string(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return "fp32";
    case Precision::bf16:
      return "bf16";
    case Precision::automatic:
      return "auto";
  }
  return "";
}

NormPlacement parse_norm_placement(std::string_view word) {
  return parse_word(word, "model.norm", kNormPlacements);
}

FeedforwardKind parse_feedforward_kind(std::string_view word) {
  return parse_word(word, "model.feedforward", kFeedforwardKinds);
}

OptimizerKind parse_optimizer_kind(std::string_view word) {
  return parse_word(word, "train.optimizer", kOptimizerKinds);
}

ScheduleKind parse_schedule_kind(std::string_view word) {
  return parse_word(word, "train.schedule", kScheduleKinds);
}

DataOrder parse_data_order(std::string_view word) {
  return parse_word(word, "train.order", kDataOrders);
}

Precision parse_precision(std::string_view word) {
  return parse_word(word, "train.precision", kPrecisions);
}

}  // namespace routing
