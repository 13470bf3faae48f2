#include "routing/config/memory_rules.h"

#include "routing/config/words.h"
#include "routing/core/error.h"

#include <cmath>
#include <string>
#include <variant>

namespace routing {
namespace {

void at_least(const char* key, std::int64_t value, std::int64_t least) {
  require<ConfigError>(value >= least, key, " is ", value, ", but it must be at least ", least);
}

// Blocks and cells are counted from the first token that is remembered, so that it must begin one.
void require_multiples(const ExperimentConfig& config, const char* key, std::int64_t size) {
  const auto check = [&](const char* name, std::int64_t value) {
    require<ConfigError>(value % size == 0, name, " is ", value, ", but with memory.length it must be a multiple of ",
                         key, " ", size, ", so that memory begins where a block does; change one of them");
  };
  check("train.sequence_length", config.train.sequence_length);
  check("memory.length", config.memory.length);
  check("eval.memory", config.eval.memory);
  require<ConfigError>(config.memory.compressed == 0, key, " cuts the text into blocks, but memory.compressed is ",
                       config.memory.compressed,
                       ", and compressed tokens stand in none; set memory.compressed=0 or use other heads");
}

void validate_heads(const ExperimentConfig& config, const HeadGroupConfig& group) {
  const auto refuse = [&](const char* why, const char* remedy) {
    throw ConfigError("memory.length is " + std::to_string(config.memory.length) + ", but " + why + "; " + remedy +
                      " or set memory.length=0");
  };
  if (std::holds_alternative<RandomPattern>(group.pattern)) {
    refuse("random heads draw from one segment", "use other heads");
  }
  if (std::holds_alternative<Local2dPattern>(group.pattern)) {
    refuse("local2d heads read images, which are whole by themselves", "use other heads");
  }
  if (const auto* routing = std::get_if<RoutingPattern>(&group.pattern)) {
    if (routing->selection == RoutingSelection::balanced) {
      refuse("routing.selection = balanced lets the tokens of a segment compete, and remembered ones would take part",
             "set routing.selection to threshold or nearest");
    }
  }
  if (group.rotary != Rotary::none) {
    refuse("rotary turns vectors by positions, which each segment counts anew", "set rotary of its heads to none");
  }
  if (const auto* local = std::get_if<LocalPattern>(&group.pattern)) {
    if (local->form == LocalForm::block) require_multiples(config, "local.window", local->window);
  }
  if (const auto* fixed = std::get_if<FixedPattern>(&group.pattern)) {
    require_multiples(config, "fixed.stride", fixed->stride);
  }
}

void validate_compression(const ExperimentConfig& config) {
  const MemoryConfig& memory = config.memory;
  at_least("memory.rate", memory.rate, 1);
  require<ConfigError>(memory.reconstruction >= 0.0 && std::isfinite(memory.reconstruction),
                       "memory.reconstruction is ", memory.reconstruction,
                       ", but it must be a finite number not below 0");
  if (memory.compressed == 0) return;
  const auto check = [&](const char* name, std::int64_t value) {
    require<ConfigError>(value % memory.rate == 0, name, " is ", value,
                         ", but with memory.compressed it must be a multiple of memory.rate ", memory.rate,
                         ", so that whole groups of tokens leave the memory; change one of them");
  };
  check("train.sequence_length", config.train.sequence_length);
  check("memory.length", memory.length);
  check("eval.memory", config.eval.memory);
}

}  // namespace

std::int64_t evaluation_memory(const ExperimentConfig& config) {
  return config.eval.memory > 0 ? config.eval.memory : config.memory.length;
}

void validate_memory(const ExperimentConfig& config) {
  const MemoryConfig& memory = config.memory;
  at_least("memory.length", memory.length, 0);
  at_least("memory.compressed", memory.compressed, 0);
  at_least("eval.memory", config.eval.memory, 0);
  validate_compression(config);
  if (memory.length == 0) {
    require<ConfigError>(memory.compressed == 0, "memory.compressed is ", memory.compressed,
                         ", but memory.length is 0, and what is compressed comes from there; raise memory.length");
    require<ConfigError>(config.eval.memory == 0, "eval.memory is ", config.eval.memory,
                         ", but memory.length is 0: the layers do not learn to read one; raise memory.length");
    return;
  }
  const auto need = [&](bool holds, const std::string& why) {
    require<ConfigError>(holds, "memory.length is ", memory.length, ", but ", why, ", or set memory.length=0");
  };
  need(config.model.encoder_layers == 0, "model.encoder_layers is " + std::to_string(config.model.encoder_layers) +
                                             ", and only decoders without a source remember; set it to 0");
  need(config.model.image_height == 0, "images are whole by themselves; set model.image_height=0");
  need(config.model.positions == PositionKind::none,
       "model.positions is " + std::string(to_string(config.model.positions)) +
           ", and remembered tokens have relative positions only; set it to none");
  need(config.data.format != DataFormat::recall, "sequences of data.format recall are whole by themselves; use a text");
  need(config.train.order == DataOrder::contiguous,
       "train.order is " + std::string(to_string(config.train.order)) +
           ", whose segments do not follow each other; set train.order=contiguous");
  need(config.train.shortest_length == 0, "train.shortest_length is " + std::to_string(config.train.shortest_length) +
                                              ", which leaves tokens between segments out; set it to 0");
  need(config.eval.stride == 0 || config.eval.stride == config.train.sequence_length,
       "eval.stride is " + std::to_string(config.eval.stride) +
           ", and tokens of overlapping windows would be remembered twice; set eval.stride=0");
  for (const LayerRule& rule : layer_rules(config)) {
    for (const HeadGroupConfig& group : rule.head_groups) validate_heads(config, group);
  }
}

}  // namespace routing
