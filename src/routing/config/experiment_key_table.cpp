#include "routing/config/keys.h"
#include "routing/config/text/split_text.h"
#include "routing/config/text/vocabulary_bands.h"
#include "routing/config/words.h"

namespace routing {
namespace {

using Keys = std::vector<ConfigKey<ExperimentConfig>>;

void add_model(Keys& keys) {
  using M = ModelConfig;
  KeySection model(keys, "model.", &ExperimentConfig::model);
  model.add("vocab_size", &M::vocab_size, "different tokens; 256 for bytes and images, 0 means those of the data");
  model.add("layers", &M::layers, "layers of the stack");
  model.add("encoder_layers", &M::encoder_layers, "layers of an encoder that reads a source; 0 means a decoder only");
  model.add("positions", &M::positions,
            "absolute positions of text: none, sinusoidal, learned, or factored into cell and place");
  model.add("position_stride", &M::position_stride, "of factored positions: tokens of a cell");
  model.add("width", &M::width, "of the stack");
  model.add("embedding_width", &M::embedding_width, "of the token embeddings; 0 means model.width");
  model.add("feedforward_width", &M::feedforward_width, "of the feed-forward hidden layer");
  model.add("head_dim", &M::head_dim, "dimensions of a head; 0 means model.width / attention.heads");
  model.add("norm", &M::norm, "layer norm after (post, as in the paper) or before (pre) sub-layers");
  model.add("feedforward", &M::feedforward, "relu, geglu or gelu");
  model.add("initial_scale", &M::initial_scale,
            "variance of starting weights times the mean of their fan-in and fan-out");
  model.add("tied_output", &M::tied_output, "the weights of the output layer are the embedding table, or its bands");
  model.add("embedding_projection", &M::embedding_projection,
            "the authors' dense layer after the embedding, even at equal widths");
  model.add("embedding_dropout", &M::embedding_dropout, "of token embeddings");
  model.add("residual_dropout", &M::residual_dropout, "of the input of the stack and the output of each sub-layer");
  model.add("attention_dropout", &M::attention_dropout, "of attention probabilities");
  model.add("feedforward_dropout", &M::feedforward_dropout, "of the feed-forward hidden layer");
  model.add("input_dropout", &M::input_dropout, "replaces input tokens by the start symbol; targets stay");
  model.add("start_symbol", &M::start_symbol,
            "before a text begins: zero (id 0, an <eos> of words and subwords) or own (a row of its own)");
  model.add("image_height", &M::image_height, "rows of an image; 0 means text");
  model.add("image_width", &M::image_width, "columns of an image; 0 means text");
  model.add_checked(
      "bands", &M::bands, [](const std::string&, const std::string& text) { parse_bands(text); },
      "ids where bands of the vocabulary end, most frequent words first (20000,60000); empty means one band");
  model.add("band_factor", &M::band_factor,
            "vectors of a band are so many times narrower than those of the band before");
  model.add("adaptive_input", &M::adaptive_input, "embeddings by model.bands: narrower vectors for rarer words");
  model.add("adaptive_output", &M::adaptive_output,
            "predictions by model.bands: a symbol per band first, then the word in its band");
  model.add("checkpoint_activations", &M::checkpoint_activations,
            "compute each layer again in the backward pass instead of keeping it: less memory, more time");
}

void add_attention(Keys& keys) {
  using A = AttentionHeads;
  KeySection attention(keys, "attention.", &ExperimentConfig::attention);
  attention.add("heads", &A::heads, "heads of every layer");
  attention.add("content_heads", &A::content_heads, "how many of them follow attention.content; the rest are local");
  attention.add("content", &A::content,
                "pattern of those heads: full, strided, fixed, random, lsh, routing, local2d, span, or local for none");
  attention.add_checked(
      "content_layers", &A::content_layers,
      [](const std::string&, const std::string& text) { parse_content_layers(text); },
      "layers that have them: all, top N, bottom N, odd, even, or FIRST..LAST counted from 0 at the bottom");
  attention.add("add_content", &A::add_content,
                "those heads join the local ones, silent at first, instead of taking the place of some");
  attention.add("encoder_content", &A::encoder_content, "the same as attention.content for the layers of an encoder");
  attention.add("cross_heads", &A::cross_heads,
                "how many heads that read the source follow attention.cross_content; the rest are full");
  attention.add_checked(
      "cross_content", &A::cross_content,
      [](const std::string& key, const std::string& text) { parse_word(text, key, kCrossPatterns); },
      "pattern of those heads: full, local, random, lsh or routing");
}

// What the heads of every pattern have; `section` reaches their HeadGroupConfig.
template <class Access>
void add_head_group(KeySection<ExperimentConfig, Access>& section, const std::string& max_relative) {
  using G = HeadGroupConfig;
  section.add("shared_query_key", &G::shared_query_key, "keys are the queries");
  section.add("key_shift", &G::key_shift,
              "1: the key of a token is the query of the token before, so that a query reads what came next");
  section.add("scale", &G::scale, "factor of the logits: a number, or this formula");
  section.add("learned_scale", &G::learned_scale, "each head learns its own factor, starting from scale");
  section.add("self", &G::self, "may a token read itself: allowed, only_if_alone or only_if_alone_in_group");
  section.add("merge", &G::merge,
              "several groups of a token: mean of their results, or lse for one softmax over all their keys");
  section.add("merge_eps", &G::merge_eps, "mean divides by (count + this)");
  section.add("relative", &G::relative, "relative positions: none, true_offset or rank in the list of keys");
  section.add("max_relative", &G::max_relative, max_relative);
  section.add("recency", &G::recency, "distant keys get smaller logits, at another rate in each head (ALiBi)");
  section.add("rotary", &G::rotary, "vectors turned by their position: none, keys (with queries) or values as well");
}

void add_patterns(Keys& keys) {
  const std::string clipped = "offsets are clipped to this";
  const std::string as_window = clipped + "; 0 means the window";

  KeySection local(
      keys, "local.", [](auto& config) -> auto& { return config.patterns.local; });
  const auto local_pattern = [](auto& group) -> auto& {
    return std::get<LocalPattern>(group.pattern);
  };
  local.add(
      "form", [=](auto& group) -> auto& { return local_pattern(group).form; },
      "sliding: the last window tokens; block: the block of the token and those before (local.flange)");
  local.add(
      "window", [=](auto& group) -> auto& { return local_pattern(group).window; },
      "tokens, itself included, or the length of a block");
  local.add(
      "flange", [=](auto& group) -> auto& { return local_pattern(group).flange; },
      "blocks beside its own that a block reads; 0 means its own alone");
  add_head_group(local, as_window);

  KeySection full(
      keys, "full.", [](auto& config) -> auto& { return config.patterns.full; });
  add_head_group(full, clipped);

  KeySection strided(
      keys, "strided.", [](auto& config) -> auto& { return config.patterns.strided; });
  strided.add(
      "stride", [](auto& group) -> auto& { return std::get<StridedPattern>(group.pattern).stride; },
      "a token reads the tokens at multiples of this distance before it, and itself");
  add_head_group(strided, clipped);

  KeySection random(
      keys, "random.", [](auto& config) -> auto& { return config.patterns.random; });
  const auto random_pattern = [](auto& group) -> auto& {
    return std::get<RandomPattern>(group.pattern);
  };
  random.add(
      "groups", [=](auto& group) -> auto& { return random_pattern(group).groups; }, "random sets of positions");
  random.add(
      "window", [=](auto& group) -> auto& { return random_pattern(group).window; }, "positions of each set");
  add_head_group(random, as_window);

  KeySection lsh(
      keys, "lsh.", [](auto& config) -> auto& { return config.patterns.lsh; });
  const auto lsh_pattern = [](auto& group) -> auto& {
    return std::get<LshPattern>(group.pattern);
  };
  lsh.add(
      "buckets", [=](auto& group) -> auto& { return lsh_pattern(group).buckets; }, "of each round; an even number");
  lsh.add(
      "rounds", [=](auto& group) -> auto& { return lsh_pattern(group).rounds; }, "independent hashings");
  lsh.add(
      "window", [=](auto& group) -> auto& { return lsh_pattern(group).window; }, "lookback inside a bucket");
  add_head_group(lsh, as_window);

  KeySection fixed(
      keys, "fixed.", [](auto& config) -> auto& { return config.patterns.fixed; });
  const auto fixed_pattern = [](auto& group) -> auto& {
    return std::get<FixedPattern>(group.pattern);
  };
  fixed.add(
      "stride", [=](auto& group) -> auto& { return fixed_pattern(group).stride; }, "tokens of a cell");
  fixed.add(
      "summary", [=](auto& group) -> auto& { return fixed_pattern(group).summary; },
      "last tokens of every cell, which all later tokens read");
  add_head_group(fixed, clipped);

  KeySection local2d(
      keys, "local2d.", [](auto& config) -> auto& { return config.patterns.local2d; });
  const auto image_blocks = [](auto& group) -> auto& {
    return std::get<Local2dPattern>(group.pattern);
  };
  local2d.add(
      "rows", [=](auto& group) -> auto& { return image_blocks(group).rows; }, "of a block of pixels");
  local2d.add(
      "columns", [=](auto& group) -> auto& { return image_blocks(group).columns; }, "of a block of pixels");
  local2d.add(
      "above", [=](auto& group) -> auto& { return image_blocks(group).above; },
      "rows above a block that its pixels read too");
  local2d.add(
      "beside", [=](auto& group) -> auto& { return image_blocks(group).beside; },
      "columns on each side of a block that its pixels read too");
  add_head_group(local2d, clipped);

  KeySection span(
      keys, "span.", [](auto& config) -> auto& { return config.patterns.span; });
  const auto span_pattern = [](auto& group) -> auto& {
    return std::get<SpanPattern>(group.pattern);
  };
  span.add(
      "limit", [=](auto& group) -> auto& { return span_pattern(group).limit; },
      "the longest span that a head can learn, and the most tokens it reads");
  span.add(
      "ramp", [=](auto& group) -> auto& { return span_pattern(group).ramp; },
      "tokens beyond the span over which weights fall from 1 to 0");
  span.add(
      "initial", [=](auto& group) -> auto& { return span_pattern(group).initial; },
      "the first span, as a share of the limit");
  span.add(
      "penalty", [=](auto& group) -> auto& { return span_pattern(group).penalty; },
      "added to the loss: this times the mean of the spans of a layer, in tokens, for each layer");
  add_head_group(span, clipped + "; 0 means the limit");
}

void add_memory(Keys& keys) {
  using M = MemoryConfig;
  KeySection memory(keys, "memory.", &ExperimentConfig::memory);
  memory.add("length", &M::length, "tokens before its segment that each layer remembers; 0 means none");
  memory.add("compressed", &M::compressed, "places for older tokens, compressed; 0 means that they are forgotten");
  memory.add("rate", &M::rate, "tokens that become one compressed one");
  memory.add("compression", &M::compression, "mean, max, convolution or most_used");
  memory.add("reconstruction", &M::reconstruction, "weight of the loss that teaches the convolution");
}

void add_routing(Keys& keys) {
  for (const ConfigKey<RoutingSettings>& key : routing_key_table()) {
    keys.push_back(
        {.name = key.name,
         .kind = key.kind,
         .description = key.description,
         .get = [get = key.get](const ExperimentConfig& config) { return get(config.routing); },
         .set = [set = key.set](ExperimentConfig& config, const std::string& text) { set(config.routing, text); }});
  }
}

void add_data(Keys& keys) {
  KeySection data(keys, "data.", &ExperimentConfig::data);
  data.add_path(ValueKind::paths, "path", &DataConfig::path,
                "any file, or the folder of a data set; several texts as a list");
  data.add("format", &DataConfig::format,
           "auto, bytes, enwik8, wikitext, pg19, text, cifar10, imagenet64, images, copy, reverse or recall");
  data.add("tokens", &DataConfig::tokens, "auto (by the format), bytes, words, subwords or subpixels");
  data.add_checked(
      "split", &DataConfig::split, [](const std::string&, const std::string& text) { parse_split(text); },
      "train/valid/test of data in one piece, in their order: shares, counts, or rest for one of them");
  data.add_path(ValueKind::path, "vocabulary", &DataConfig::vocabulary,
                "file of words, one per line, or SentencePiece model; empty means made from train");
  data.add("vocabulary_size", &DataConfig::vocabulary_size, "pieces of a SentencePiece model that is made");
  data.add("image_size", &DataConfig::image_size,
           "shrink images to this height and width by averaging; 0 means as they are");
  data.add("require_whole", &DataConfig::require_whole, "refuse a part of a set instead of labelling it");
  data.add("recall_keys", &DataConfig::recall_keys, "of format recall: names of facts");
  data.add("recall_values", &DataConfig::recall_values, "of format recall: values of facts");
  data.add("recall_filler", &DataConfig::recall_filler, "of format recall: words between them, said in turn");
  data.add("key_first", &DataConfig::key_first,
           "of format recall: facts name the key before the value, as questions do");
  data.add_path(ValueKind::path, "cache", &DataConfig::cache,
                "folder for tokenised data; empty means $XDG_CACHE_HOME/routing");
}

void add_train(Keys& keys) {
  using T = TrainConfig;
  KeySection train(keys, "train.", &ExperimentConfig::train);
  train.add("steps", &T::steps, "optimiser steps");
  train.add("minutes", &T::minutes, "minutes of training after which to stop; 0 means by steps only");
  train.add("batch_size", &T::batch_size, "sequences of a batch");
  train.add("sequence_length", &T::sequence_length, "tokens of a sequence");
  train.add("source_length", &T::source_length, "tokens that an encoder reads; 0 means train.sequence_length");
  train.add("accumulation", &T::accumulation, "batches summed into one optimiser step");
  train.add("sequence_ranks", &T::sequence_ranks, "ranks that share a sequence, each with a piece of it");
  train.add("shortest_length", &T::shortest_length,
            "cut each batch to a random length from this one up; 0 means none is cut");
  train.add("seed", &T::seed, "fixes weights, order of data and dropout");
  train.add("order", &T::order, "crops: random windows; contiguous: streams that go on where their last window ended");
  train.add("precision", &T::precision, "fp32, bf16 or auto");
  train.add("optimizer", &T::optimizer, "adam, adamw, adafactor or adafactorw");
  train.add("learning_rate", &T::learning_rate, "the highest the schedule reaches");
  train.add("beta1", &T::beta1, "decay of the average of gradients");
  train.add("beta2", &T::beta2, "decay of the average of squared gradients");
  train.add("epsilon", &T::epsilon, "added to the root of that average");
  train.add("weight_decay", &T::weight_decay, "adam, adafactor: L2 in the gradient; adamw, adafactorw: decoupled");
  train.add("decay_exponent", &T::decay_exponent,
            "adafactor: step t keeps 1 - t^-this of the average of squared gradients");
  train.add("update_clip", &T::update_clip,
            "adafactor: largest root mean square of a parameter's update; 0 means no clipping");
  train.add("relative_step", &T::relative_step, "adafactor: steps are a share of the parameter's own size");
  train.add("schedule", &T::schedule, "of the learning rate: constant, vaswani, cosine or rsqrt");
  train.add("warmup_steps", &T::warmup_steps, "steps of linear growth at the start");
  train.add("decay_steps", &T::decay_steps, "where cosine ends; 0 means train.steps");
  train.add("final_learning_rate", &T::final_learning_rate, "at the end of cosine, as a share of train.learning_rate");
  train.add("clip", &T::clip, "largest norm of the gradient; 0 means no clipping");
  train.add("log_every", &T::log_every, "steps between lines of metrics");
  train.add("eval_every", &T::eval_every, "steps between evaluations; 0 means only at the end");
  train.add("eval_tokens", &T::eval_tokens, "of eval.split in those evaluations; 0 means all of it");
  train.add("checkpoint_every", &T::checkpoint_every, "steps between checkpoints; 0 means only at the end");
  train.add("keep_checkpoints", &T::keep_checkpoints, "how many of the newest to keep, beside the best");
  train.add("clusters_every", &T::clusters_every, "steps between lines of clusters.jsonl; 0 means none");
  train.add("sample_every", &T::sample_every, "steps between samples of the model; 0 means none");
  train.add("sample_tokens", &T::sample_tokens, "of a sample of text");
}

void add_eval(Keys& keys) {
  KeySection eval(keys, "eval.", &ExperimentConfig::eval);
  eval.add_checked(
      "split", &EvalConfig::split,
      [](const std::string& key, const std::string& text) { require_word(text, key, split_names()); },
      "train, valid or test");
  eval.add("stride", &EvalConfig::stride, "new tokens of a window; 0 means disjoint windows");
  eval.add("batch_size", &EvalConfig::batch_size, "windows of a batch");
  eval.add("subwords_per_word", &EvalConfig::subwords_per_word,
           "the authors' rule for word perplexity: 1.248 for PG-19; 0 means by counted words");
  eval.add("memory", &EvalConfig::memory, "tokens that layers remember in evaluation; 0 means memory.length");
}

Keys make_keys() {
  Keys keys;
  KeySection top(
      keys, "", [](auto& config) -> auto& { return config; });
  top.add("name", &ExperimentConfig::name, "of the experiment");
  top.add("source", &ExperimentConfig::source, "where the values come from");
  add_model(keys);
  add_attention(keys);
  add_patterns(keys);
  add_memory(keys);
  add_routing(keys);
  add_data(keys);
  add_train(keys);
  add_eval(keys);
  return keys;
}

}  // namespace

const std::vector<ConfigKey<ExperimentConfig>>& experiment_key_table() {
  static const Keys keys = make_keys();
  return keys;
}

}  // namespace routing
