#include "routing/config/experiment.h"

#include "routing/config/words.h"

namespace routing {

std::string_view to_string(NormPlacement norm) {
  return norm == NormPlacement::post ? "post" : "pre";
}

std::string_view to_string(FeedforwardKind kind) {
  return kind == FeedforwardKind::relu ? "relu" : "geglu";
}

std::string_view to_string(PositionKind kind) {
  switch (kind) {
    case PositionKind::none:
      return "none";
    case PositionKind::sinusoidal:
      return "sinusoidal";
    case PositionKind::learned:
      return "learned";
  }
  return "";
}

std::string_view to_string(StartSymbol symbol) {
  return symbol == StartSymbol::zero ? "zero" : "own";
}

std::string_view to_string(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::adam:
      return "adam";
    case OptimizerKind::adamw:
      return "adamw";
    case OptimizerKind::adafactor:
      return "adafactor";
    case OptimizerKind::adafactorw:
      return "adafactorw";
  }
  return "";
}

std::string_view to_string(DataFormat format) {
  switch (format) {
    case DataFormat::automatic:
      return "auto";
    case DataFormat::bytes:
      return "bytes";
    case DataFormat::enwik8:
      return "enwik8";
    case DataFormat::wikitext:
      return "wikitext";
    case DataFormat::pg19:
      return "pg19";
    case DataFormat::text:
      return "text";
    case DataFormat::cifar10:
      return "cifar10";
    case DataFormat::imagenet64:
      return "imagenet64";
    case DataFormat::images:
      return "images";
    case DataFormat::copy:
      return "copy";
    case DataFormat::reverse:
      return "reverse";
    case DataFormat::recall:
      return "recall";
  }
  return "";
}

std::string_view to_string(TokenKind kind) {
  switch (kind) {
    case TokenKind::automatic:
      return "auto";
    case TokenKind::bytes:
      return "bytes";
    case TokenKind::words:
      return "words";
    case TokenKind::subwords:
      return "subwords";
    case TokenKind::subpixels:
      return "subpixels";
  }
  return "";
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

PositionKind parse_position_kind(std::string_view word) {
  return parse_word(word, "model.positions", kPositionKinds);
}

StartSymbol parse_start_symbol(std::string_view word) {
  return parse_word(word, "model.start_symbol", kStartSymbols);
}

OptimizerKind parse_optimizer_kind(std::string_view word) {
  return parse_word(word, "train.optimizer", kOptimizerKinds);
}

DataFormat parse_data_format(std::string_view word) {
  return parse_word(word, "data.format", kDataFormats);
}

TokenKind parse_token_kind(std::string_view word) {
  return parse_word(word, "data.tokens", kTokenKinds);
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
