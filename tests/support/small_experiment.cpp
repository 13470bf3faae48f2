#include "support/small_experiment.h"

#include "routing/core/random.h"

namespace routing {

ExperimentConfig small_experiment(const std::string& content) {
  ExperimentConfig config;
  config.name = "small-" + content;
  config.model.vocab_size = 256;
  config.model.layers = 2;
  config.model.width = 16;
  config.model.feedforward_width = 32;
  config.attention.heads = 4;
  config.attention.content_heads = content == "local" ? 0 : 2;
  config.attention.content = parse_word<PatternKind>(content, "content");
  std::get<LocalPattern>(config.patterns.local.pattern).window = 8;
  std::get<StridedPattern>(config.patterns.strided.pattern).stride = 4;
  config.patterns.random.pattern = RandomPattern{.groups = 4, .window = 8};
  config.patterns.lsh.pattern = LshPattern{.buckets = 4, .rounds = 1, .window = 8};
  config.patterns.fixed.pattern = FixedPattern{.stride = 5, .summary = 2};
  config.patterns.local2d.pattern = Local2dPattern{.rows = 2, .columns = 3, .above = 1, .beside = 2};
  if (content == "local2d") {
    config.model.image_height = 40;
    config.model.image_width = 5;
  }
  config.patterns.span.pattern = SpanPattern{.limit = 16, .ramp = 4, .initial = 0.3, .penalty = 1e-4};
  config.routing.routing().clusters = 4;
  config.routing.routing().window = 8;
  config.train.batch_size = 2;
  config.train.sequence_length = 32;
  config.train.steps = 20;
  config.train.warmup_steps = 2;
  config.train.precision = Precision::fp32;
  return config;
}

void keys_as_they_stand(HeadGroupConfig& group) {
  group.key_shift = 0;
  group.learned_scale = false;
  group.self = SelfRule::only_if_alone;
}

ExperimentConfig odd_experiment(const std::string& content, std::int64_t tokens) {
  ExperimentConfig config = small_experiment(content);
  config.model.vocab_size = 37;
  config.model.width = 36;
  config.model.feedforward_width = 50;
  config.model.initial_scale = 1.0;
  std::get<LocalPattern>(config.patterns.local.pattern).window = 70;
  config.train.sequence_length = tokens;
  return config;
}

ExperimentConfig in_bands(ExperimentConfig config) {
  const std::int64_t words = config.model.vocab_size;
  config.name += "-bands";
  config.model.bands = std::to_string(words / 8) + "," + std::to_string(words / 2);
  config.model.band_factor = 2.0;
  config.model.adaptive_input = config.model.adaptive_output = true;
  config.model.tied_output = true;
  config.model.start_symbol = StartSymbol::own;
  return config;
}

ExperimentConfig small_recall_experiment() {
  ExperimentConfig config = small_experiment();
  config.data.format = DataFormat::recall;
  config.data.recall_keys = 20;
  config.data.recall_values = 4;
  config.data.recall_filler = 3;
  config.model.vocab_size = 29;
  config.train.sequence_length = 96;
  return config;
}

std::vector<ContentCase> content_cases() {
  std::vector<ContentCase> cases;
  for (const char* content : {"local", "full", "strided", "random", "lsh"}) {
    cases.push_back({content, small_experiment(content)});
  }
  for (const RoutingSelection selection :
       {RoutingSelection::balanced, RoutingSelection::nearest, RoutingSelection::threshold}) {
    ExperimentConfig config = small_experiment("routing");
    config.routing.routing().selection = selection;
    if (selection != RoutingSelection::threshold) keys_as_they_stand(config.routing.group);
    cases.push_back({std::string(to_string(selection)), config});
  }
  for (const char* content : {"fixed", "local2d", "span"}) cases.push_back({content, small_experiment(content)});
  return cases;
}

ExperimentConfig small_pairs_experiment(const std::string& content) {
  ExperimentConfig config = small_experiment(content);
  config.name = "small-pairs-" + content;
  config.model.vocab_size = 40;
  config.model.encoder_layers = 1;
  config.model.positions = PositionKind::sinusoidal;
  config.attention.encoder_content = config.attention.content;
  config.attention.cross_heads = 2;
  config.attention.cross_content = content == "strided" ? PatternKind::full : config.attention.content;
  config.train.source_length = 24;
  return config;
}

std::vector<ContentCase> pairs_cases() {
  std::vector<ContentCase> cases;
  for (const char* content : {"local", "full", "strided", "random", "lsh"}) {
    cases.push_back({content, small_pairs_experiment(content)});
  }
  for (const RoutingSelection selection :
       {RoutingSelection::balanced, RoutingSelection::nearest, RoutingSelection::threshold}) {
    ExperimentConfig config = small_pairs_experiment("routing");
    config.routing.routing().selection = selection;
    cases.push_back({std::string(to_string(selection)), config});
  }
  return cases;
}

at::Tensor random_tokens(std::int64_t batch, std::int64_t n, std::int64_t vocab, std::uint64_t seed) {
  at::Tensor tokens = at::empty({batch, n}, at::kLong);
  RandomStream stream(seed, "test tokens");
  for (std::int64_t i = 0; i < tokens.numel(); ++i) {
    tokens.data_ptr<std::int64_t>()[i] = stream.below(static_cast<std::uint32_t>(vocab));
  }
  return tokens;
}

}  // namespace routing
