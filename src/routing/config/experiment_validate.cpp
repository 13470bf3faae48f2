#include "routing/config/experiment.h"
#include "routing/config/memory_rules.h"
#include "routing/config/text/split_text.h"
#include "routing/config/text/vocabulary_bands.h"
#include "routing/config/words.h"
#include "routing/core/error.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>

namespace routing {
namespace {

void at_least(const char* key, std::int64_t value, std::int64_t least) {
  require<ConfigError>(value >= least, key, " is ", value, ", but it must be at least ", least);
}

void above_zero(const char* key, double value) {
  require<ConfigError>(value > 0.0 && std::isfinite(value), key, " is ", value,
                       ", but it must be a finite number above 0");
}

void not_negative(const char* key, double value) {
  require<ConfigError>(value >= 0.0 && std::isfinite(value), key, " is ", value,
                       ", but it must be a finite number not below 0");
}

void probability(const char* key, double value) {
  require<ConfigError>(value >= 0.0 && value < 1.0, key, " is ", value, ", but it must be at least 0 and below 1");
}

// Ids, positions and places in a batch are numbers of 31 bits. Of layers and widths more than these is a slip of the
// hand, or a model of a stranger that would build layers until memory is gone.
void validate_sizes(const ExperimentConfig& config) {
  struct Limit {
    const char* key;
    std::int64_t value, most;
  };
  constexpr std::int64_t kMostLayers = 10'000;
  constexpr std::int64_t kWidest = std::int64_t{1} << 24U;
  constexpr std::int64_t kMostHeads = std::int64_t{1} << 16U;
  constexpr std::int64_t kLongestSide = std::int64_t{1} << 14U;
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const ModelConfig& model = config.model;
  const TrainConfig& train = config.train;
  const DataConfig& data = config.data;
  for (const auto& [key, value, most] : std::initializer_list<Limit>{
           {"model.layers", model.layers, kMostLayers},
           {"model.encoder_layers", model.encoder_layers, kMostLayers},
           {"model.width", model.width, kWidest},
           {"model.embedding_width", model.embedding_width, kWidest},
           {"model.feedforward_width", model.feedforward_width, kWidest},
           {"model.head_dim", model.head_dim, kWidest},
           {"attention.heads", config.attention.heads, kMostHeads},
           {"attention.cross_heads", config.attention.cross_heads, kMostHeads},
           {"model.image_height", model.image_height, kLongestSide},
           {"model.image_width", model.image_width, kLongestSide},
           {"data.image_size", data.image_size, kLongestSide},
           {"model.vocab_size", model.vocab_size, kMost},
           {"model.position_stride", model.position_stride, kMost},
           {"memory.length", config.memory.length, kMost},
           {"memory.compressed", config.memory.compressed, kMost},
           {"memory.rate", config.memory.rate, kMost},
           {"data.vocabulary_size", data.vocabulary_size, kMost},
           {"data.recall_keys", data.recall_keys, kMost},
           {"data.recall_values", data.recall_values, kMost},
           {"data.recall_filler", data.recall_filler, kMost},
           {"train.batch_size", train.batch_size, kMost},
           {"train.sequence_length", train.sequence_length, kMost},
           {"train.source_length", train.source_length, kMost},
           {"train.accumulation", train.accumulation, kMost},
           {"train.sequence_ranks", train.sequence_ranks, kMost},
           {"train.sample_tokens", train.sample_tokens, kMost},
           {"eval.batch_size", config.eval.batch_size, kMost},
           {"eval.memory", config.eval.memory, kMost},
       }) {
    require<ConfigError>(value <= most, key, " is ", value, ", but it must be at most ", most);
  }
  // More than any machine holds, and few enough to be counted in bytes.
  constexpr double kMostNumbers = 0x1p50;
  const double numbers = static_cast<double>(train.batch_size) * static_cast<double>(train.sequence_length) *
                         static_cast<double>(model.width);
  require<ConfigError>(numbers <= kMostNumbers, "train.batch_size ", train.batch_size, " sequences of ",
                       train.sequence_length, " tokens (train.sequence_length) are ", numbers,
                       " numbers in each layer of model.width ", model.width, ", but at most ", kMostNumbers,
                       " can be; lower one of them");
}

void validate_bands(const ModelConfig& model) {
  const std::int64_t width = model.embedding_width > 0 ? model.embedding_width : model.width;
  const std::size_t count =
      vocabulary_bands(
          {.ends = model.bands, .vocab_size = model.vocab_size, .width = width, .factor = model.band_factor})
          .size();
  const bool reads = model.adaptive_input;
  const bool predicts = model.adaptive_output;
  require<ConfigError>(count == 1 || reads || predicts, "model.bands is '", model.bands,
                       "', but nothing has bands; set model.adaptive_input, model.adaptive_output or both, or leave "
                       "model.bands empty");
  require<ConfigError>(
      count == 1 || !model.tied_output || reads == predicts, "model.tied_output is true, but only ",
      reads ? "model.adaptive_input" : "model.adaptive_output", " has the bands '", model.bands,
      "', and tables of different shapes cannot be one; set both or neither, or model.tied_output=false");
  require<ConfigError>((!reads && !predicts) || model.image_height == 0, "model.",
                       reads ? "adaptive_input" : "adaptive_output",
                       " is true, but values of images (model.image_height ", model.image_height,
                       ") are not words of a frequency; set it to false");
}

// A tied output layer is always possible: with its own embedding width the output goes width -> embedding width ->
// vocabulary (docs/facts.md C2), so what it reads is as wide as the table.
void validate_model(const ModelConfig& model) {
  require<ConfigError>(model.vocab_size == 0 || model.vocab_size >= 2, "model.vocab_size is ", model.vocab_size,
                       ", but it must be at least 2, or 0 for that of the data");
  at_least("model.image_height", model.image_height, 0);
  at_least("model.image_width", model.image_width, 0);
  require<ConfigError>((model.image_height == 0) == (model.image_width == 0), "model.image_height is ",
                       model.image_height, " and model.image_width ", model.image_width,
                       "; an image has both, text has neither");
  at_least("model.layers", model.layers, 1);
  at_least("model.encoder_layers", model.encoder_layers, 0);
  require<ConfigError>(model.image_height == 0 || model.positions == PositionKind::none, "model.positions is ",
                       to_string(model.positions), ", but images (model.image_height ", model.image_height,
                       ") have tables of rows and columns; use none");
  at_least("model.position_stride", model.position_stride, 1);
  require<ConfigError>(model.encoder_layers == 0 || model.image_height == 0, "model.encoder_layers is ",
                       model.encoder_layers, ", but images (model.image_height ", model.image_height,
                       ") have no source to read; set one of them to 0");
  at_least("model.width", model.width, 1);
  at_least("model.embedding_width", model.embedding_width, 0);
  validate_bands(model);
  at_least("model.feedforward_width", model.feedforward_width, 1);
  at_least("model.head_dim", model.head_dim, 0);
  above_zero("model.initial_scale", model.initial_scale);
  probability("model.embedding_dropout", model.embedding_dropout);
  probability("model.residual_dropout", model.residual_dropout);
  probability("model.attention_dropout", model.attention_dropout);
  probability("model.feedforward_dropout", model.feedforward_dropout);
  probability("model.input_dropout", model.input_dropout);
}

void validate_schedule(const TrainConfig& train) {
  above_zero("train.learning_rate", train.learning_rate);
  at_least("train.warmup_steps", train.warmup_steps, 0);
  at_least("train.decay_steps", train.decay_steps, 0);
  require<ConfigError>(train.final_learning_rate >= 0.0 && train.final_learning_rate <= 1.0,
                       "train.final_learning_rate is ", train.final_learning_rate,
                       ", but it is a share of train.learning_rate between 0 and 1");
  // A short trial of a preset may end inside its warm-up; an end that was written down may not lie there.
  require<ConfigError>(
      train.schedule != ScheduleKind::cosine || train.decay_steps == 0 || train.decay_steps > train.warmup_steps,
      "train.decay_steps ", train.decay_steps, " is not after train.warmup_steps ", train.warmup_steps,
      "; raise train.decay_steps or lower train.warmup_steps");
  const bool by_warmup = train.schedule == ScheduleKind::vaswani || train.schedule == ScheduleKind::rsqrt;
  require<ConfigError>(!by_warmup || train.warmup_steps >= 1, "train.warmup_steps is ", train.warmup_steps,
                       ", but train.schedule ", to_string(train.schedule),
                       " begins to fall there and needs at least 1; raise train.warmup_steps or change train.schedule");
}

void validate_train(const TrainConfig& train) {
  at_least("train.steps", train.steps, 1);
  not_negative("train.minutes", train.minutes);
  at_least("train.batch_size", train.batch_size, 1);
  at_least("train.sequence_length", train.sequence_length, 1);
  at_least("train.source_length", train.source_length, 0);
  at_least("train.accumulation", train.accumulation, 1);
  at_least("train.sequence_ranks", train.sequence_ranks, 1);
  at_least("train.shortest_length", train.shortest_length, 0);
  require<ConfigError>(train.shortest_length <= train.sequence_length, "train.shortest_length ", train.shortest_length,
                       " is longer than train.sequence_length ", train.sequence_length,
                       "; lower it, or set 0 for none");
  constexpr std::uint64_t largest_seed = std::numeric_limits<std::int64_t>::max();
  require<ConfigError>(train.seed <= largest_seed, "train.seed ", train.seed, " is above ", largest_seed,
                       ", the largest number of a TOML file; choose a smaller one");
  probability("train.beta1", train.beta1);
  probability("train.beta2", train.beta2);
  above_zero("train.epsilon", train.epsilon);
  not_negative("train.weight_decay", train.weight_decay);
  above_zero("train.decay_exponent", train.decay_exponent);
  not_negative("train.update_clip", train.update_clip);
  validate_schedule(train);
  not_negative("train.clip", train.clip);
  at_least("train.log_every", train.log_every, 1);
  at_least("train.eval_every", train.eval_every, 0);
  at_least("train.eval_tokens", train.eval_tokens, 0);
  at_least("train.checkpoint_every", train.checkpoint_every, 0);
  at_least("train.keep_checkpoints", train.keep_checkpoints, 1);
  at_least("train.clusters_every", train.clusters_every, 0);
  at_least("train.sample_every", train.sample_every, 0);
  at_least("train.sample_tokens", train.sample_tokens, 1);
}

void validate_eval(const ExperimentConfig& config) {
  const EvalConfig& eval = config.eval;
  const std::vector<std::string>& names = split_names();
  require_word(eval.split, "eval.split", names);
  const std::array<SplitPart, 3> parts = parse_split(config.data.split);
  for (std::size_t part = 0; part < parts.size(); ++part) {
    require<ConfigError>(names[part] != eval.split || !parts[part].is_empty(), "eval.split is ", eval.split,
                         ", but in data.split '", config.data.split,
                         "' that part has 0 bytes; choose another eval.split or change data.split");
  }
  at_least("eval.stride", eval.stride, 0);
  require<ConfigError>(eval.stride <= config.train.sequence_length, "eval.stride ", eval.stride,
                       " is longer than train.sequence_length ", config.train.sequence_length,
                       ", so that tokens would be left out; lower eval.stride or raise train.sequence_length");
  at_least("eval.batch_size", eval.batch_size, 1);
  not_negative("eval.subwords_per_word", eval.subwords_per_word);
}

// Made-up pairs of sequences: the target is as long as the source and an end symbol.
void validate_sequence_task(const ExperimentConfig& config) {
  const DataFormat format = config.data.format;
  if (format != DataFormat::copy && format != DataFormat::reverse) return;
  require<ConfigError>(config.model.encoder_layers > 0, "data.format is ", to_string(format),
                       ", whose targets follow from a source, but model.encoder_layers is 0; raise it");
  require<ConfigError>(config.model.vocab_size >= 3, "model.vocab_size is ", config.model.vocab_size,
                       ", but data.format ", to_string(format),
                       " has a start, an end and at least one symbol; use 3 or more");
  const std::int64_t longest = source_length(config.train);
  require<ConfigError>(config.train.source_length > 0 && config.train.sequence_length == longest + 1,
                       "train.sequence_length is ", config.train.sequence_length, " and train.source_length ",
                       config.train.source_length, ", but a target of data.format ", to_string(format),
                       " is its source and an end symbol; set both, the first one higher by 1");
  require<ConfigError>(config.train.shortest_length <= longest, "train.shortest_length ", config.train.shortest_length,
                       " is longer than train.source_length ", longest, "; lower it, or set 0 for none");
}

// Facts and questions in one sequence: every token needs an id.
void validate_recall(const ExperimentConfig& config) {
  const DataConfig& data = config.data;
  at_least("data.recall_keys", data.recall_keys, 2);
  at_least("data.recall_values", data.recall_values, 2);
  at_least("data.recall_filler", data.recall_filler, 1);
  require<ConfigError>(!data.key_first || data.format == DataFormat::recall,
                       "data.key_first is true, but data.format is ", to_string(data.format),
                       ", which has no facts; set data.format=recall or data.key_first=false");
  if (data.format != DataFormat::recall) return;
  require<ConfigError>(config.model.encoder_layers == 0, "data.format is recall, which has no source, but ",
                       "model.encoder_layers is ", config.model.encoder_layers, "; set it to 0");
  const std::int64_t ids = 2 + data.recall_keys + data.recall_values + data.recall_filler;
  require<ConfigError>(config.model.vocab_size >= ids, "model.vocab_size is ", config.model.vocab_size,
                       ", but data.format recall has ", ids, " ids: data.recall_keys ", data.recall_keys,
                       ", data.recall_values ", data.recall_values, ", data.recall_filler ", data.recall_filler,
                       " and 2 marks; raise model.vocab_size");
  require<ConfigError>(config.model.image_height == 0, "data.format is recall, but model.image_height is ",
                       config.model.image_height, "; set it to 0");
}

// Samples begin with nothing and are read by people.
void validate_samples(const ExperimentConfig& config) {
  if (config.train.sample_every == 0) return;
  require<ConfigError>(config.model.encoder_layers == 0, "train.sample_every is ", config.train.sample_every,
                       ", but model.encoder_layers is ", config.model.encoder_layers,
                       ", and such a model writes nothing without a source; set train.sample_every=0");
  require<ConfigError>(config.data.format != DataFormat::recall, "train.sample_every is ", config.train.sample_every,
                       ", but data.format recall has no text; set train.sample_every=0");
}

void validate_data(const ExperimentConfig& config) {
  const ModelConfig& model = config.model;
  at_least("data.vocabulary_size", config.data.vocabulary_size, 2);
  at_least("data.image_size", config.data.image_size, 0);
  validate_sequence_task(config);
  validate_recall(config);
  if (model.image_height == 0) return;
  require<ConfigError>(
      !model.tied_output,
      "model.tied_output is true, but images have three tables of values; set model.tied_output=false");
  const std::int64_t subpixels = 3 * model.image_height * model.image_width;
  require<ConfigError>(config.train.sequence_length <= subpixels, "train.sequence_length ",
                       config.train.sequence_length, " is longer than an image of ", model.image_height, " x ",
                       model.image_width, " pixels, which has ", subpixels, " values; lower train.sequence_length");
}

// A window never reads more than the sequence: a longer one is a mistake in one of the two numbers.
struct LengthKey {
  const char* key;
  std::int64_t length;
};
void validate_window(const HeadGroupConfig& group, const LengthKey& sequence) {
  const auto fits = [&](const char* name, std::int64_t length) {
    const std::string key = pattern_name(group.pattern) + name;
    require<ConfigError>(length <= sequence.length, key, " ", length, " is longer than ", sequence.key, " ",
                         sequence.length, "; lower ", key, " or raise ", sequence.key);
  };
  std::visit(
      [&](const auto& pattern) {
        if constexpr (requires { pattern.window; }) fits(".window", pattern.window);
        if constexpr (requires { pattern.limit; }) fits(".limit", pattern.limit);
        if constexpr (requires { pattern.summary; }) {
          require<ConfigError>(pattern.stride <= sequence.length, "fixed.stride ", pattern.stride, " is longer than ",
                               sequence.key, " ", sequence.length, ", so that no cell would be summed up; lower ",
                               "fixed.stride or raise ", sequence.key);
        }
      },
      group.pattern);
}

// The self-attention of one stack.
void validate_stack(const std::vector<LayerRule>& rules, AttentionKind kind, const LengthKey& sequence) {
  for (const LayerRule& rule : rules) {
    for (const HeadGroupConfig& group : rule.head_groups) {
      validate_head_group("[" + pattern_name(group.pattern) + "]", group, kind);
      validate_window(group, sequence);
    }
  }
}

void validate_content_layers(const AttentionHeads& given, const LengthKey& layers) {
  const LayerRange range = parse_content_layers(given.content_layers);
  // Layers it needs at least; "odd" begins at 1 and goes on to the top.
  const std::int64_t reach = range.first < 0 ? -range.first : std::max(range.first, range.last) + 1;
  require<ConfigError>(reach <= layers.length, "attention.content_layers '", given.content_layers, "' needs ", reach,
                       " layers, but ", layers.key, " is ", layers.length,
                       "; change attention.content_layers or raise ", layers.key);
}

void validate_attention(const ExperimentConfig& config) {
  const ModelConfig& model = config.model;
  const std::vector<LayerRule> rules = layer_rules(config);
  require<ConfigError>(model.head_dim > 0 || model.width % config.attention.heads == 0, "model.width ", model.width,
                       " is not a multiple of attention.heads ", config.attention.heads,
                       "; change one of them or set model.head_dim");
  validate_content_layers(config.attention, {"model.layers", model.layers});
  // With a memory a window may reach beyond its segment.
  const LengthKey length = config.memory.length > 0 ? LengthKey{"train.sequence_length and memory.length together",
                                                                config.train.sequence_length + config.memory.length}
                                                    : LengthKey{"train.sequence_length", config.train.sequence_length};
  validate_stack(rules, AttentionKind::causal_self, length);
  for (std::int64_t layer = 0; layer < model.layers; ++layer) validate(attention_of_layer(config, layer));
  if (model.encoder_layers == 0) return;
  validate_content_layers(config.attention, {"model.encoder_layers", model.encoder_layers});
  validate_stack(encoder_layer_rules(config), AttentionKind::bidirectional_self,
                 {"train.source_length", source_length(config.train)});
  for (std::int64_t layer = 0; layer < model.encoder_layers; ++layer) {
    validate(attention_of_encoder_layer(config, layer));
  }
  for (std::int64_t layer = 0; layer < model.layers; ++layer) validate(cross_attention_of_layer(config, layer));
}

// A rank that has a piece of each sequence must know what its queries see without the pieces after it.
void validate_sequence_ranks(const ExperimentConfig& config) {
  const TrainConfig& train = config.train;
  if (train.sequence_ranks == 1) return;
  const auto refuse = [&](const std::string& why, const char* remedy) {
    throw ConfigError("train.sequence_ranks is " + std::to_string(train.sequence_ranks) + ", but " + why + "; " +
                      remedy + " or set train.sequence_ranks=1");
  };
  if (config.model.encoder_layers > 0) {
    refuse("model.encoder_layers is " + std::to_string(config.model.encoder_layers) +
               ", and only sequences of a decoder-only model are split",
           "set model.encoder_layers=0");
  }
  if (config.memory.length > 0) {
    refuse("memory.length is " + std::to_string(config.memory.length) +
               ", and segments that remember are read one after the other",
           "set memory.length=0");
  }
  const std::int64_t shortest = train.shortest_length > 0 ? train.shortest_length : train.sequence_length;
  if (shortest < train.sequence_ranks) {
    refuse("a sequence may have " + std::to_string(shortest) + " tokens, and each rank needs at least one",
           train.shortest_length > 0 ? "raise train.shortest_length" : "raise train.sequence_length");
  }
  for (const LayerRule& rule : layer_rules(config)) {
    for (const HeadGroupConfig& group : rule.head_groups) {
      if (std::holds_alternative<RandomPattern>(group.pattern)) {
        refuse("random heads draw from the whole sequence", "use other heads");
      }
      const auto* const routing = std::get_if<RoutingPattern>(&group.pattern);
      if (routing != nullptr && routing->selection == RoutingSelection::balanced) {
        refuse("routing.selection = balanced takes the best tokens of the whole sequence",
               "set routing.selection to threshold or nearest");
      }
    }
  }
}

}  // namespace

void validate(const ExperimentConfig& config) {
  require<ConfigError>(!config.name.empty(), "name is empty; give the experiment a name");
  validate_sizes(config);
  validate_model(config.model);
  validate_train(config.train);
  validate_eval(config);
  validate_data(config);
  validate_samples(config);
  validate_attention(config);
  validate_memory(config);
  validate_sequence_ranks(config);
}

}  // namespace routing
