#include "routing/config/experiment.h"
#include "routing/config/keys.h"
#include "support/experiment_cases.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace routing::experiment_validate_test {
namespace {

using C = ExperimentConfig;

// Changes one thing about a good configuration.
template <class Change>
std::string refusal_after(const Change& change) {
  ExperimentConfig config;
  change(config);
  return refusal_of([&] { validate(config); });
}

TEST(ValidateExperiment, TheVocabularyMayBeThatOfTheData) {
  EXPECT_EQ(refusal_after([](C& c) { c.model.vocab_size = 0; }), "accepted");
  EXPECT_EQ(refusal_after([](C& c) { c.model.vocab_size = 2; }), "accepted");
  EXPECT_EQ(refusal_after([](C& c) { c.model.vocab_size = 1; }),
            "model.vocab_size is 1, but it must be at least 2, or 0 for that of the data");
}

TEST(ValidateExperiment, BandsBelongToLayersThatCanHaveThem) {
  const auto with = [](const std::string& bands, bool input, bool output, const auto& change) {
    return refusal_after([&](C& c) {
      c.model.bands = bands;
      c.model.adaptive_input = input;
      c.model.adaptive_output = output;
      change(c);
    });
  };
  const auto nothing = [](C&) {};
  const auto tied = [](C& c) { c.model.tied_output = true; };
  EXPECT_EQ(with("20,60", true, true, nothing), "accepted");
  EXPECT_EQ(with("20,60", true, true, tied), "accepted");
  EXPECT_EQ(with("20,60", true, false, nothing), "accepted");
  EXPECT_EQ(with("20,60", false, true, nothing), "accepted");
  EXPECT_EQ(with("", true, false, tied), "accepted") << "one band is the plain table";
  EXPECT_EQ(with("20,60", true, true, [](C& c) { c.model.vocab_size = 0; }), "accepted");
  EXPECT_EQ(with("20,60", false, false, nothing),
            "model.bands is '20,60', but nothing has bands; set model.adaptive_input, model.adaptive_output or both, "
            "or leave model.bands empty");
  EXPECT_EQ(with("20,60", false, true, tied),
            "model.tied_output is true, but only model.adaptive_output has the bands '20,60', and tables of different "
            "shapes cannot be one; set both or neither, or model.tied_output=false");
  EXPECT_EQ(with("20,60", true, false, tied).substr(0, 60),
            "model.tied_output is true, but only model.adaptive_input has");
  EXPECT_EQ(with("20,256", true, true, nothing),
            "model.bands '20,256' end at id 256, but the vocabulary has 256 entries, so that no word is left for the "
            "last band; lower model.bands");
  EXPECT_EQ(with("60,20", true, true, nothing),
            "model.bands: 20 of '60,20' stands after 60; write the ids where bands end in ascending order");
  EXPECT_EQ(with("20", true, true, [](C& c) { c.model.band_factor = 0.0; }),
            "model.band_factor is 0, but it must be a finite number of at least 1");
  EXPECT_EQ(with("1,2,3,4,5", true, true, nothing),
            "model.bands '1,2,3,4,5' are 6 bands, but vectors of 256 numbers have none left in band 5 with "
            "model.band_factor 4; write fewer bands or lower model.band_factor");
  const auto image = [](C& c) {
    c.model.image_height = c.model.image_width = 32;
    c.train.sequence_length = 3072;
  };
  EXPECT_EQ(with("", false, true, image),
            "model.adaptive_output is true, but values of images (model.image_height 32) are not words of a frequency; "
            "set it to false");
}

TEST(ValidateExperiment, AnImageHasTwoSidesAndHoldsTheSequence) {
  const auto with_image = [](std::int64_t height, std::int64_t width, std::int64_t length) {
    return refusal_after([=](C& c) {
      c.model.image_height = height;
      c.model.image_width = width;
      c.train.sequence_length = length;
    });
  };
  EXPECT_EQ(with_image(32, 32, 3072), "accepted");
  EXPECT_EQ(with_image(32, 0, 3072),
            "model.image_height is 32 and model.image_width 0; an image has both, text has neither");
  EXPECT_EQ(with_image(32, 20, 1921),
            "train.sequence_length 1921 is longer than an image of 32 x 20 pixels, which has 1920 values; lower "
            "train.sequence_length");
}

TEST(ValidateExperiment, RandomLengthsAreNotLongerThanTheSequence) {
  EXPECT_EQ(refusal_after([](C& c) {
              c.train.sequence_length = 300;
              c.train.shortest_length = 301;
            }),
            "train.shortest_length 301 is longer than train.sequence_length 300; lower it, or set 0 for none");
}

TEST(ValidateExperiment, SamplesAreOfModelsThatWriteSomethingAPersonCanRead) {
  EXPECT_EQ(
      refusal_after([](C& c) {
        c.train.sample_every = 10;
        c.model.encoder_layers = 2;
      }),
      "train.sample_every is 10, but model.encoder_layers is 2, and such a model writes nothing without a source; "
      "set train.sample_every=0");
  EXPECT_EQ(refusal_after([](C& c) {
              c.train.sample_every = 10;
              c.data.format = DataFormat::recall;
              c.model.vocab_size = 5000;
            }),
            "train.sample_every is 10, but data.format recall has no text; set train.sample_every=0");
  EXPECT_EQ(refusal_after([](C& c) { c.train.sample_every = 10; }), "accepted");
}

TEST(ValidateExperiment, DefaultsAreAccepted) {
  EXPECT_EQ(refusal_after([](C&) {}), "accepted");
}

TEST(ValidateExperiment, CountsHaveASmallestValueAndItIsAccepted) {
  struct Case {
    std::string key;
    std::int64_t least;
    std::function<void(C&, std::int64_t)> set;
  };
  const std::vector<Case> cases{
      {"model.layers", 1, [](C& c, auto v) { c.model.layers = v; }},
      {"model.encoder_layers", 0, [](C& c, auto v) { c.model.encoder_layers = v; }},
      {"train.source_length", 0, [](C& c, auto v) { c.train.source_length = v; }},
      {"model.embedding_width", 0, [](C& c, auto v) { c.model.embedding_width = v; }},
      {"model.feedforward_width", 1, [](C& c, auto v) { c.model.feedforward_width = v; }},
      {"model.head_dim", 0, [](C& c, auto v) { c.model.head_dim = v; }},
      {"train.steps", 1, [](C& c, auto v) { c.train.steps = v; }},
      {"train.batch_size", 1, [](C& c, auto v) { c.train.batch_size = v; }},
      {"train.accumulation", 1, [](C& c, auto v) { c.train.accumulation = v; }},
      {"train.sequence_ranks", 1, [](C& c, auto v) { c.train.sequence_ranks = v; }},
      {"train.shortest_length", 0, [](C& c, auto v) { c.train.shortest_length = v; }},
      {"data.vocabulary_size", 2, [](C& c, auto v) { c.data.vocabulary_size = v; }},
      {"data.image_size", 0, [](C& c, auto v) { c.data.image_size = v; }},
      {"train.warmup_steps", 0, [](C& c, auto v) { c.train.warmup_steps = v; }},
      {"train.decay_steps", 0, [](C& c, auto v) { c.train.decay_steps = v; }},
      {"train.log_every", 1, [](C& c, auto v) { c.train.log_every = v; }},
      {"train.eval_every", 0, [](C& c, auto v) { c.train.eval_every = v; }},
      {"train.eval_tokens", 0, [](C& c, auto v) { c.train.eval_tokens = v; }},
      {"train.checkpoint_every", 0, [](C& c, auto v) { c.train.checkpoint_every = v; }},
      {"train.keep_checkpoints", 1, [](C& c, auto v) { c.train.keep_checkpoints = v; }},
      {"train.clusters_every", 0, [](C& c, auto v) { c.train.clusters_every = v; }},
      {"train.sample_every", 0, [](C& c, auto v) { c.train.sample_every = v; }},
      {"train.sample_tokens", 1, [](C& c, auto v) { c.train.sample_tokens = v; }},
      {"eval.stride", 0, [](C& c, auto v) { c.eval.stride = v; }},
      {"eval.batch_size", 1, [](C& c, auto v) { c.eval.batch_size = v; }},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(refusal_after([&](C& c) { one.set(c, one.least); }), "accepted") << one.key;
    EXPECT_EQ(
        refusal_after([&](C& c) { one.set(c, one.least - 1); }),
        one.key + " is " + std::to_string(one.least - 1) + ", but it must be at least " + std::to_string(one.least));
  }
  EXPECT_EQ(refusal_after([](C& c) { c.model.width = 0; }), "model.width is 0, but it must be at least 1");
  EXPECT_EQ(refusal_after([](C& c) { c.train.sequence_length = 0; }),
            "train.sequence_length is 0, but it must be at least 1");
  EXPECT_EQ(refusal_after([](C& c) { c.attention.heads = 0; }), "attention.heads is 0, but it must be at least 1");
}

TEST(ValidateExperiment, SequencesThatRanksShareAreOfHeadsThatKnowWhatTheySee) {
  const auto reason_of = [](const std::function<void(C&)>& change) {
    return refusal_after([&](C& c) {
      c.train.sequence_ranks = 2;
      change(c);
    });
  };
  EXPECT_EQ(reason_of([](C&) {}), "accepted");
  EXPECT_EQ(reason_of([](C& c) { c.attention.content = PatternKind::random; }),
            "train.sequence_ranks is 2, but random heads draw from the whole sequence; use other heads or set "
            "train.sequence_ranks=1");
  EXPECT_EQ(reason_of([](C& c) {
              c.attention.content = PatternKind::routing;
              c.routing.routing().selection = RoutingSelection::balanced;
              c.routing.group.key_shift = 0;
            }),
            "train.sequence_ranks is 2, but routing.selection = balanced takes the best tokens of the whole sequence; "
            "set routing.selection to threshold or nearest or set train.sequence_ranks=1");
  EXPECT_EQ(reason_of([](C& c) {
              c.memory.length = 8;
              c.train.order = DataOrder::contiguous;
            }),
            "train.sequence_ranks is 2, but memory.length is 8, and segments that remember are read one after the "
            "other; set memory.length=0 or set train.sequence_ranks=1");
  EXPECT_EQ(reason_of([](C& c) { c.train.shortest_length = 1; }),
            "train.sequence_ranks is 2, but a sequence may have 1 tokens, and each rank needs at least one; raise "
            "train.shortest_length or set train.sequence_ranks=1");
  EXPECT_NE(
      reason_of([](C& c) { c.model.encoder_layers = 1; }).find("only sequences of a decoder-only model are split"),
      std::string::npos);
}

TEST(ValidateExperiment, OnlyFactsHaveKeys) {
  EXPECT_EQ(refusal_after([](C& c) { c.data.key_first = true; }),
            "data.key_first is true, but data.format is auto, which has no facts; set data.format=recall or "
            "data.key_first=false");
  EXPECT_EQ(refusal_after([](C& c) {
              c.data.format = DataFormat::recall;
              c.data.key_first = true;
            }),
            "accepted");
}

TEST(ValidateExperiment, PositionsAreOfText) {
  for (const PositionKind kind : {PositionKind::sinusoidal, PositionKind::learned, PositionKind::factored}) {
    EXPECT_EQ(refusal_after([&](C& c) { c.model.positions = kind; }), "accepted");
  }
  EXPECT_EQ(
      refusal_after([](C& c) {
        c.model.positions = PositionKind::factored;
        c.model.image_height = 32;
        c.model.image_width = 64;
      }),
      "model.positions is factored, but images (model.image_height 32) have tables of rows and columns; use none");
  EXPECT_EQ(refusal_after([](C& c) { c.model.position_stride = 0; }),
            "model.position_stride is 0, but it must be at least 1");
}

TEST(ValidateExperiment, CellsAndImagesMustFitTheRest) {
  EXPECT_EQ(refusal_after([](C& c) {
              c.attention.content = PatternKind::fixed;
              std::get<FixedPattern>(c.patterns.fixed.pattern).stride = c.train.sequence_length + 1;
            }),
            "fixed.stride 2049 is longer than train.sequence_length 2048, so that no cell would be summed up; lower "
            "fixed.stride or raise train.sequence_length");
  EXPECT_EQ(refusal_after([](C& c) { c.attention.content = PatternKind::local2d; }),
            "[local2d]: model.image_width is 0, but windows of two dimensions need the rows of an image; set "
            "model.image_width and model.image_height, or use local heads for text");
  EXPECT_EQ(refusal_after([](C& c) {
              c.attention.content = PatternKind::local2d;
              c.model.image_height = 32;
              c.model.image_width = 32;
            }),
            "accepted");
}

TEST(ValidateExperiment, AnEncoderMustFitTheRest) {
  const auto encoder = [](const std::function<void(C&)>& change) {
    return refusal_after([&](C& c) {
      c.model.encoder_layers = 2;
      c.train.source_length = 300;
      change(c);
    });
  };
  EXPECT_EQ(encoder([](C&) {}), "accepted");
  EXPECT_EQ(encoder([](C& c) { c.model.positions = PositionKind::sinusoidal; }), "accepted");
  EXPECT_EQ(encoder([](C& c) { c.model.positions = PositionKind::factored; }), "accepted");
  EXPECT_EQ(encoder([](C& c) { c.train.source_length = 255; }),
            "local.window 256 is longer than train.source_length 255; lower local.window or raise "
            "train.source_length");
  EXPECT_EQ(encoder([](C& c) { c.attention.content_layers = "top 3"; }),
            "attention.content_layers 'top 3' needs 3 layers, but model.encoder_layers is 2; change "
            "attention.content_layers or raise model.encoder_layers");
  EXPECT_EQ(encoder([](C& c) { c.attention.cross_heads = 9; }),
            "attention.cross_heads 9 is not between 0 and attention.heads 8; lower attention.cross_heads or raise "
            "attention.heads");
  EXPECT_EQ(encoder([](C& c) {
              c.model.image_height = 32;
              c.model.image_width = 32;
            }),
            "model.encoder_layers is 2, but images (model.image_height 32) have no source to read; set one of them to "
            "0");
}

TEST(ValidateExperiment, MadeUpPairsNeedAnEncoderAndLengthsThatFit) {
  const auto task = [](const std::function<void(C&)>& change) {
    return refusal_after([&](C& c) {
      c.data.format = DataFormat::copy;
      c.model.encoder_layers = 1;
      c.train.source_length = 300;
      c.train.sequence_length = 301;
      change(c);
    });
  };
  EXPECT_EQ(task([](C&) {}), "accepted");
  EXPECT_EQ(task([](C& c) { c.model.encoder_layers = 0; }),
            "data.format is copy, whose targets follow from a source, but model.encoder_layers is 0; raise it");
  EXPECT_EQ(task([](C& c) { c.model.vocab_size = 2; }),
            "model.vocab_size is 2, but data.format copy has a start, an end and at least one symbol; use 3 or more");
  EXPECT_EQ(task([](C& c) { c.train.sequence_length = 300; }),
            "train.sequence_length is 300 and train.source_length 300, but a target of data.format copy is its source "
            "and an end symbol; set both, the first one higher by 1");
  EXPECT_EQ(task([](C& c) { c.train.shortest_length = 301; }),
            "train.shortest_length 301 is longer than train.source_length 300; lower it, or set 0 for none");
}

TEST(ValidateExperiment, ProbabilitiesAreAtLeast0AndBelow1) {
  struct Case {
    std::string key;
    std::function<double&(C&)> field;
  };
  const std::vector<Case> cases{
      {"model.embedding_dropout", [](C& c) -> double& { return c.model.embedding_dropout; }},
      {"model.residual_dropout", [](C& c) -> double& { return c.model.residual_dropout; }},
      {"model.attention_dropout", [](C& c) -> double& { return c.model.attention_dropout; }},
      {"model.feedforward_dropout", [](C& c) -> double& { return c.model.feedforward_dropout; }},
      {"model.input_dropout", [](C& c) -> double& { return c.model.input_dropout; }},
      {"train.beta1", [](C& c) -> double& { return c.train.beta1; }},
      {"train.beta2", [](C& c) -> double& { return c.train.beta2; }},
  };
  for (const Case& one : cases) {
    const auto refusal = [&](double value) { return refusal_after([&](C& c) { one.field(c) = value; }); };
    EXPECT_EQ(refusal(0.0), "accepted") << one.key;
    EXPECT_EQ(refusal(0.999), "accepted") << one.key;
    EXPECT_EQ(refusal(1.0), one.key + " is 1, but it must be at least 0 and below 1");
    EXPECT_EQ(refusal(-0.1), one.key + " is -0.1, but it must be at least 0 and below 1");
    EXPECT_EQ(refusal(std::numeric_limits<double>::quiet_NaN()),
              one.key + " is nan, but it must be at least 0 and below 1");
  }
}

TEST(ValidateExperiment, NumbersOfTrainingAreFiniteAndNotNegative) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::string not_below = ", but it must be a finite number not below 0";
  const std::string above = ", but it must be a finite number above 0";
  EXPECT_EQ(refusal_after([](C& c) { c.train.minutes = -1; }), "train.minutes is -1" + not_below);
  EXPECT_EQ(refusal_after([](C& c) { c.train.weight_decay = -1; }), "train.weight_decay is -1" + not_below);
  EXPECT_EQ(refusal_after([](C& c) { c.train.clip = -1; }), "train.clip is -1" + not_below);
  EXPECT_EQ(refusal_after([&](C& c) { c.train.clip = infinity; }), "train.clip is inf" + not_below);
  EXPECT_EQ(refusal_after([](C& c) { c.train.learning_rate = 0; }), "train.learning_rate is 0" + above);
  EXPECT_EQ(refusal_after([](C& c) { c.model.initial_scale = 0; }), "model.initial_scale is 0" + above);
  EXPECT_EQ(refusal_after([](C& c) { c.train.epsilon = 0; }), "train.epsilon is 0" + above);
  EXPECT_EQ(refusal_after([](C& c) { c.train.minutes = c.train.weight_decay = c.train.clip = 0; }), "accepted");
  const std::string share = ", but it is a share of train.learning_rate between 0 and 1";
  EXPECT_EQ(refusal_after([](C& c) { c.train.final_learning_rate = 1.5; }), "train.final_learning_rate is 1.5" + share);
  EXPECT_EQ(refusal_after([](C& c) { c.train.final_learning_rate = -0.5; }),
            "train.final_learning_rate is -0.5" + share);
  EXPECT_EQ(refusal_after([](C& c) { c.train.final_learning_rate = 1.0; }), "accepted");
  EXPECT_EQ(refusal_after([](C& c) { c.train.seed = 9223372036854775808U; }),
            "train.seed 9223372036854775808 is above 9223372036854775807, the largest number of a TOML file; choose a "
            "smaller one");
}

TEST(ValidateExperiment, SchedulesFitTheirWarmup) {
  EXPECT_EQ(refusal_after([](C& c) { c.train.decay_steps = c.train.warmup_steps = 50; }),
            "train.decay_steps 50 is not after train.warmup_steps 50; raise train.decay_steps or lower "
            "train.warmup_steps");
  EXPECT_EQ(refusal_after([](C& c) { c.train.steps = 20; }), "accepted") << "a trial may end inside the warm-up";
  for (const ScheduleKind kind : {ScheduleKind::vaswani, ScheduleKind::rsqrt}) {
    EXPECT_EQ(refusal_after([&](C& c) { c.train.schedule = kind, c.train.warmup_steps = 0; }),
              "train.warmup_steps is 0, but train.schedule " + std::string(to_string(kind)) +
                  " begins to fall there and needs at least 1; raise train.warmup_steps or change train.schedule");
    EXPECT_EQ(refusal_after([&](C& c) { c.train.schedule = kind, c.train.warmup_steps = 1; }), "accepted");
  }
  EXPECT_EQ(refusal_after([](C& c) { c.train.schedule = ScheduleKind::constant, c.train.warmup_steps = 0; }),
            "accepted");
}

TEST(ValidateExperiment, AWindowLongerThanTheSequenceIsRefusedByItsKey) {
  EXPECT_EQ(refusal_after([](C& c) { c.routing.routing().window = 4096; }),
            "routing.window 4096 is longer than train.sequence_length 2048; lower routing.window or raise "
            "train.sequence_length");
  EXPECT_EQ(refusal_after([](C& c) { std::get<LocalPattern>(c.patterns.local.pattern).window = 2049; }),
            "local.window 2049 is longer than train.sequence_length 2048; lower local.window or raise "
            "train.sequence_length");
  EXPECT_EQ(refusal_after([](C& c) {
              std::get<LshPattern>(c.patterns.lsh.pattern).window = 2049;
              c.attention.content = PatternKind::lsh;
            }),
            "lsh.window 2049 is longer than train.sequence_length 2048; lower lsh.window or raise "
            "train.sequence_length");
  EXPECT_EQ(refusal_after([](C& c) {
              std::get<RandomPattern>(c.patterns.random.pattern).window = 2049;
              c.attention.content = PatternKind::random;
            }),
            "random.window 2049 is longer than train.sequence_length 2048; lower random.window or raise "
            "train.sequence_length");
  EXPECT_EQ(refusal_after([](C& c) { c.routing.routing().window = 2048; }), "accepted");
}

TEST(ValidateExperiment, PatternsThatNoLayerUsesMayBeAnything) {
  EXPECT_EQ(refusal_after([](C& c) {
              c.routing.routing().window = 4096;
              std::get<LshPattern>(c.patterns.lsh.pattern).buckets = -1;
              c.attention.content = PatternKind::full;
            }),
            "accepted");
  EXPECT_EQ(refusal_after([](C& c) {
              std::get<LocalPattern>(c.patterns.local.pattern).window = 4096;
              c.attention.content_heads = c.attention.heads;
            }),
            "accepted")
      << "all heads are routed";
  EXPECT_NE(refusal_after([](C& c) {
              std::get<LocalPattern>(c.patterns.local.pattern).window = 4096;
              c.attention.content_heads = c.attention.heads;
              c.attention.content_layers = "top 1";
            }),
            "accepted")
      << "lower layers are local";
}

TEST(ValidateExperiment, SectionsInUseAreCheckedByName) {
  EXPECT_EQ(refusal_after([](C& c) { std::get<LocalPattern>(c.patterns.local.pattern).window = 0; }),
            "[local]: window is 0, but it must be at least 1");
  EXPECT_EQ(refusal_after([](C& c) { c.routing.routing().decay = 1.0; }),
            "[routing]: decay is 1, but it must be at least 0 and below 1");
  EXPECT_EQ(refusal_after([](C& c) {
              c.attention.content = PatternKind::lsh;
              std::get<LshPattern>(c.patterns.lsh.pattern).buckets = 7;
            }),
            "[lsh]: buckets is 7, but a rotation makes pairs of buckets; use 8");
  EXPECT_EQ(refusal_after([](C& c) {
              c.attention.content = PatternKind::full;
              c.patterns.full.max_relative = 0;
            }),
            "[full]: max_relative is 0, but relative positions need at least 1");
}

TEST(ValidateExperiment, HeadsFitTheLayerAndTheWidth) {
  EXPECT_EQ(refusal_after([](C& c) { c.attention.content_heads = 9; }),
            "attention.content_heads 9 is not between 0 and attention.heads 8; lower attention.content_heads, raise "
            "attention.heads or set attention.add_content");
  EXPECT_EQ(refusal_after([](C& c) { c.attention.content_heads = -1; }),
            "attention.content_heads is -1, but it must not be below 0");
  EXPECT_EQ(refusal_after([](C& c) { c.model.width = 250; }),
            "model.width 250 is not a multiple of attention.heads 8; change one of them or set model.head_dim");
  EXPECT_EQ(refusal_after([](C& c) { c.model.width = 250, c.model.head_dim = 32; }), "accepted");
}

TEST(ValidateExperiment, ContentIsAKnownPatternInLayersThatExist) {
  C config;
  EXPECT_EQ(refusal_of([&] { set_key(config, "attention.content", "routed"); }),
            "attention.content: 'routed' is not known; choose one of local, full, strided, random, lsh, routing, "
            "fixed, local2d, span (did "
            "you mean 'routing'?)");
  EXPECT_EQ(refusal_after([](C& c) { c.attention.content_layers = "top 5"; }),
            "attention.content_layers 'top 5' needs 5 layers, but model.layers is 4; change attention.content_layers "
            "or raise model.layers");
  EXPECT_EQ(refusal_after([](C& c) { c.attention.content_layers = "2..4"; }),
            "attention.content_layers '2..4' needs 5 layers, but model.layers is 4; change attention.content_layers "
            "or raise model.layers");
  EXPECT_EQ(refusal_after([](C& c) {
              c.attention.content_layers = "odd";
              c.model.layers = 1;
            }),
            "attention.content_layers 'odd' needs 2 layers, but model.layers is 1; change attention.content_layers "
            "or raise model.layers");
  EXPECT_EQ(refusal_after([](C& c) { c.attention.content_layers = "odd"; }), "accepted");
  EXPECT_EQ(refusal_after([](C& c) { c.attention.content_layers = "top 4"; }), "accepted");
  EXPECT_EQ(refusal_after([](C& c) { c.attention.content_layers = "2..3"; }), "accepted");
  EXPECT_TRUE(refusal_after([](C& c) { c.attention.content_layers = "some"; }).starts_with("attention.content_layers"));
}

// With its own embedding width the output goes width -> embedding width -> vocabulary, so the table always fits.
TEST(ValidateExperiment, TheOutputMayBeTiedAtAnyEmbeddingWidth) {
  for (const std::int64_t width : {0, 256, 64}) {
    EXPECT_EQ(refusal_after([&](C& c) { c.model.tied_output = true, c.model.embedding_width = width; }), "accepted");
  }
}

TEST(ValidateExperiment, EvaluationReadsASplitThatHasBytesWithoutGaps) {
  EXPECT_EQ(refusal_after([](C& c) { c.data.split = "rest/0/2000000"; }),
            "eval.split is valid, but in data.split 'rest/0/2000000' that part has 0 bytes; choose another eval.split "
            "or change data.split");
  EXPECT_EQ(refusal_after([](C& c) { c.data.split = "rest/0/2000000", c.eval.split = "test"; }), "accepted");
  EXPECT_EQ(refusal_after([](C& c) { c.eval.split = "tets"; }),
            "eval.split: 'tets' is not known; choose one of train, valid, test (did you mean 'test'?)");
  EXPECT_TRUE(refusal_after([](C& c) { c.data.split = "90%/10%"; }).starts_with("data.split: '90%/10%' has 2 parts"));
  EXPECT_EQ(refusal_after([](C& c) { c.eval.stride = 2049; }),
            "eval.stride 2049 is longer than train.sequence_length 2048, so that tokens would be left out; lower "
            "eval.stride or raise train.sequence_length");
  EXPECT_EQ(refusal_after([](C& c) { c.eval.stride = 2048; }), "accepted");
}

TEST(ValidateExperiment, AnExperimentHasAName) {
  EXPECT_EQ(refusal_after([](C& c) { c.name = ""; }), "name is empty; give the experiment a name");
}

}  // namespace
}  // namespace routing::experiment_validate_test
