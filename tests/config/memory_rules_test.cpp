#include "routing/config/memory_rules.h"

#include "routing/core/error.h"
#include "support/message_of.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace routing::memory_rules_test {
namespace {

ExperimentConfig remembering() {
  ExperimentConfig config;
  config.train.sequence_length = 512;
  config.train.order = DataOrder::contiguous;
  config.memory.length = 512;
  return config;
}

TEST(MemoryRules, EvaluationRemembersAsTrainingDoesUnlessItIsToldOtherwise) {
  ExperimentConfig config = remembering();
  EXPECT_EQ(evaluation_memory(config), 512);
  config.eval.memory = 2048;
  EXPECT_EQ(evaluation_memory(config), 2048);
  EXPECT_EQ(evaluation_memory({}), 0);
}

TEST(MemoryRules, WhatFitsIsTaken) {
  validate(remembering());
  ExperimentConfig config = remembering();
  // With a memory windows may be longer than a segment.
  std::get<LocalPattern>(config.patterns.local.pattern).window = 1024;
  config.eval.stride = 512;
  config.eval.memory = 4096;
  config.memory.compressed = 256;
  validate(config);
  for (const PatternKind kind : {PatternKind::full, PatternKind::strided, PatternKind::lsh}) {
    config.attention.content = kind;
    validate(config);
  }
  config = remembering();
  std::get<LocalPattern>(config.patterns.local.pattern).form = LocalForm::block;
  validate(config);
}

struct Mistake {
  std::function<void(ExperimentConfig&)> make;
  std::string says;
};

TEST(MemoryRules, WhatDoesNotFitIsRefusedWithBothValuesAndARemedy) {
  const std::vector<Mistake> mistakes{
      {[](auto& c) { c.memory.length = -1; }, "memory.length is -1"},
      {[](auto& c) { c.memory.compressed = -1; }, "memory.compressed is -1"},
      {[](auto& c) { c.patterns.local.rotary = Rotary::keys; }, "rotary turns vectors by positions"},
      {[](auto& c) { c.eval.memory = -1; }, "eval.memory is -1"},
      {[](auto& c) { c.memory.rate = 0; }, "memory.rate is 0"},
      {[](auto& c) { c.memory.reconstruction = -0.5; }, "memory.reconstruction is -0.5"},
      {[](auto& c) { c.train.order = DataOrder::crops; }, "set train.order=contiguous"},
      {[](auto& c) { c.train.shortest_length = 100; }, "train.shortest_length is 100"},
      {[](auto& c) { c.eval.stride = 100; }, "eval.stride is 100"},
      {[](auto& c) { c.routing.routing().selection = RoutingSelection::balanced; }, "threshold or nearest"},
      {[](auto& c) { c.attention.content = PatternKind::random; }, "random heads draw from one segment"},
      {[](auto& c) { std::get<LocalPattern>(c.patterns.local.pattern).window = 1025; },
       "train.sequence_length and memory.length together 1024"},
      {[](auto& c) {
         c.memory.length = 0;
         c.memory.compressed = 64;
       },
       "raise memory.length"},
      {[](auto& c) {
         c.memory.length = 0;
         c.eval.memory = 64;
       },
       "the layers do not learn to read one"},
      {[](auto& c) {
         c.memory.compressed = 64;
         c.memory.rate = 3;
       },
       "must be a multiple of memory.rate 3"},
      {[](auto& c) {
         c.memory.compressed = 64;
         c.eval.memory = 514;
       },
       "eval.memory is 514"},
      {[](auto& c) {
         std::get<LocalPattern>(c.patterns.local.pattern).form = LocalForm::block;
         c.memory.length = 300;
       },
       "memory.length is 300, but with memory.length it must be a multiple of local.window 256"},
      {[](auto& c) {
         std::get<LocalPattern>(c.patterns.local.pattern).form = LocalForm::block;
         c.memory.compressed = 64;
       },
       "compressed tokens stand in none"},
      {[](auto& c) {
         c.model.encoder_layers = 1;
         c.model.positions = PositionKind::sinusoidal;
       },
       "model.encoder_layers is 1"},
  };
  for (const Mistake& mistake : mistakes) {
    ExperimentConfig config = remembering();
    mistake.make(config);
    const std::string message = message_of<ConfigError>([&] { validate(config); });
    EXPECT_NE(message.find(mistake.says), std::string::npos) << mistake.says << "\n" << message;
  }
}

}  // namespace
}  // namespace routing::memory_rules_test
