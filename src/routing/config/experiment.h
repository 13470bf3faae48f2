// Everything that makes a run, as plain data: model, attention, data, training and evaluation. TOML files, presets,
// environment variables and --set write into this one structure; a run directory keeps it as config.toml.
#pragma once

#include "routing/config/attention.h"
#include "routing/config/routing_settings.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace routing {

enum class NormPlacement {
  post,  // x = LN(x + f(x)), as in the paper
  pre,   // x = x + f(LN(x)), and one LN after the last layer
};
enum class FeedforwardKind {
  relu,   // W2 relu(W1 x + b1) + b2
  geglu,  // W2 (gelu(Wg x) * (W1 x)), no biases, as the authors' code since November 2020; gelu in its tanh form
  gelu,   // W2 gelu(W1 x + b1) + b2, gelu by the error function, as in lucidrains' routing-transformer
};

// What tells a token its place in its sequence, beside the relative positions of local and full heads.
enum class PositionKind {
  none,
  sinusoidal,  // sines and cosines added to the embeddings; any length
  learned,     // a table, of train.source_length or train.sequence_length rows
  factored,    // two tables: of the cell of model.position_stride tokens and of the place in it (Child et al. 2019)
};

// What a sequence shifted right begins with, and what model.input_dropout puts in place of a token. Images have a
// symbol of their own either way.
enum class StartSymbol {
  zero,  // id 0, as in the authors' code (docs/facts.md C4): ends a line of words, a document of subwords
  own,   // one more row of the table, which no text holds and no output names
};

struct ModelConfig {
  std::int64_t vocab_size = 256;  // 0 means that of the data, which is known when training begins
  std::int64_t layers = 4;
  // Layers of an encoder that reads a source sequence; the `layers` then also read what it makes of it
  // (cross-attention). 0 means that there is no source: a decoder only.
  std::int64_t encoder_layers = 0;
  PositionKind positions = PositionKind::none;
  std::int64_t position_stride = 128;  // of factored positions
  std::int64_t width = 256;
  std::int64_t embedding_width = 0;  // 0 means width
  std::int64_t feedforward_width = 1024;
  std::int64_t head_dim = 0;  // 0 means width / heads
  NormPlacement norm = NormPlacement::pre;
  FeedforwardKind feedforward = FeedforwardKind::relu;
  double initial_scale = 0.2;         // variance of starting weights times the mean of their fan-in and fan-out
  bool tied_output = false;           // the output layer's weights are the embedding table
  bool embedding_projection = false;  // the authors' dense layer after the embedding, even at equal widths
  double embedding_dropout = 0.0;     // of token embeddings
  double residual_dropout = 0.0;      // of the input of the stack and of each sub-layer's output
  double attention_dropout = 0.0;     // of attention probabilities
  double feedforward_dropout = 0.0;   // of the feed-forward hidden layer
  double input_dropout = 0.0;         // replaces input tokens by the start symbol; targets stay
  StartSymbol start_symbol = StartSymbol::zero;
  // Images as sequences of red, green and blue values in raster order: tokens then also know their row, column and
  // channel. 0 means text.
  std::int64_t image_height = 0;
  std::int64_t image_width = 0;
  // Adaptive embeddings and softmax (Baevski & Auli 2019, Grave et al. 2017): the vocabulary, most frequent first, is
  // cut at these ids into bands ("20000,60000"); empty means one band, the plain table.
  std::string bands = {};
  double band_factor = 4.0;             // each band's vectors are this many times narrower than the band's before
  bool adaptive_input = false;          // embeddings by bands
  bool adaptive_output = false;         // the loss by bands; tied_output shares the bands' tables with the input
  bool checkpoint_activations = false;  // recompute each layer in the backward pass instead of keeping it
  friend bool operator==(const ModelConfig&, const ModelConfig&) = default;
};

// Every layer has `heads` heads. In the layers of `content_layers`, `content_heads` of them follow the content pattern
// and the rest are local; in the other layers all heads are local. With `add_content` all `heads` are local, and the
// content heads come on top.
struct AttentionHeads {
  std::int64_t heads = 8;
  std::int64_t content_heads = 4;
  PatternKind content = PatternKind::routing;  // local where there is no content pattern
  std::string content_layers = "all";          // "all", "top N", "bottom N", "odd", "even" or "FIRST..LAST", from 0
  // The content heads join the `heads` local ones instead of taking the place of some: at the start the model computes
  // what it would without them. head_dim = 0 then means width / heads still.
  bool add_content = false;
  // The same as content for the layers of an encoder, whose heads read on both sides; heads, content_heads and
  // content_layers as above.
  PatternKind encoder_content = PatternKind::routing;
  // Of the heads with which each decoder layer reads the source, so many follow cross_content; the rest are full.
  std::int64_t cross_heads = 4;
  PatternKind cross_content = PatternKind::routing;  // one of kCrossPatterns
  friend bool operator==(const AttentionHeads&, const AttentionHeads&) = default;
};

// A head group whose pattern is fixed by the section it stands in: [local], [full], [strided] and so on. How many heads
// it has comes from `attention`. max_relative = 0 means the window of the pattern, where it has one.
//
// Text has no absolute positions (docs/facts.md C4), so local and full heads know offsets by default.
struct PatternSections {
  HeadGroupConfig local{.pattern = LocalPattern{}, .relative = RelativePosition::true_offset};
  HeadGroupConfig full{.pattern = FullPattern{}, .relative = RelativePosition::true_offset, .max_relative = 256};
  HeadGroupConfig strided{.pattern = StridedPattern{}};
  HeadGroupConfig random{.pattern = RandomPattern{}};
  HeadGroupConfig lsh{.pattern = LshPattern{}, .shared_query_key = true, .self = SelfRule::only_if_alone};
  HeadGroupConfig fixed{.pattern = FixedPattern{}};
  HeadGroupConfig local2d{.pattern = Local2dPattern{}};
  HeadGroupConfig span{.pattern = SpanPattern{}, .relative = RelativePosition::true_offset};
  friend bool operator==(const PatternSections&, const PatternSections&) = default;
};

// How a compressed memory sums up `rate` neighbouring tokens (Rae et al. 2020).
enum class Compression {
  mean,
  max,
  convolution,
  most_used,  // keeps the tokens that attention read most
};

// What a layer remembers of the segments before: the inputs that it had there, without gradients (Transformer-XL), and
// older ones compressed (Compressive Transformer). In training each stream of train.order = contiguous has its own.
struct MemoryConfig {
  std::int64_t length = 0;      // tokens; 0 means no memory
  std::int64_t compressed = 0;  // places for compressed tokens beyond them
  std::int64_t rate = 4;        // tokens that become one of them
  Compression compression = Compression::convolution;
  double reconstruction = 1.0;  // weight of the loss that teaches the compression, apart from the main one
  friend bool operator==(const MemoryConfig&, const MemoryConfig&) = default;
};

enum class DataFormat {
  automatic,   // told by what lies at the path
  bytes,       // any file
  enwik8,      // bytes; the whole set has 100,000,000
  wikitext,    // wiki.{train,valid,test}.tokens: WikiText-103 and WikiText-2
  pg19,        // train/, validation/, test/ with one file per book
  text,        // any UTF-8 file or folder of .txt files
  cifar10,     // data_batch_1.bin … data_batch_5.bin, test_batch.bin
  imagenet64,  // train_64x64/, valid_64x64/ of PNG, or train_data_batch_1.npz …, val_data.npz
  images,      // any folder of PNG files of one size
  copy,        // made up, no path: random symbols; the target is the source
  reverse,     // the same with the source backwards
  recall,      // made up, no path: facts stated once and asked for much later
};
enum class TokenKind {
  automatic,  // words for wikitext, subwords for pg19 and text, subpixels for images, otherwise bytes
  bytes,
  words,      // what stands between spaces; the end of a line is a word of its own
  subwords,   // SentencePiece
  subpixels,  // red, green, blue of each pixel in raster order
};

struct DataConfig {
  std::string path;  // or several: path_list.h
  DataFormat format = DataFormat::automatic;
  TokenKind tokens = TokenKind::automatic;
  // train/valid/test, in order: shares, counts, or "rest" for one of them. For data that come in one piece.
  std::string split = "90%/5%/5%";
  std::string vocabulary;                // a vocabulary file of words or a SentencePiece model; empty: made from train
  std::int64_t vocabulary_size = 32000;  // of a SentencePiece model that is made
  std::int64_t image_size = 0;           // images are shrunk to this height and width by averaging; 0 means as they are
  bool require_whole = false;            // refuse a part of a set
  std::string cache;                     // where tokenised data are kept; empty: $XDG_CACHE_HOME/routing
  // Of format recall, see data/tasks/recall_task.h: names and answers of facts, and the words between them.
  std::int64_t recall_keys = 192;
  std::int64_t recall_values = 32;
  std::int64_t recall_filler = 16;
  bool key_first = false;  // of format recall: facts name the key before the value, as questions do
  friend bool operator==(const DataConfig&, const DataConfig&) = default;
};

enum class OptimizerKind { adam, adamw, adafactor, adafactorw };
enum class ScheduleKind { constant, vaswani, cosine, rsqrt };
enum class DataOrder {
  crops,       // random windows, drawn anew for every step
  contiguous,  // batch_size streams through the training split, each going on where its last window ended
};
enum class Precision { fp32, bf16, automatic };

struct TrainConfig {
  std::int64_t steps = 1000;
  double minutes = 0.0;  // minutes of training after which to stop; 0 means by steps only
  std::int64_t batch_size = 4;
  std::int64_t sequence_length = 2048;
  std::int64_t source_length = 0;  // of what an encoder reads; 0 means sequence_length
  std::int64_t accumulation = 1;   // batches summed into one optimiser step
  // Ranks that share a sequence, each with a piece of it; so many neighbours are one data rank.
  std::int64_t sequence_ranks = 1;
  // Each batch is cut to a length drawn from this one to sequence_length (docs/facts.md G3); 0 means none is cut.
  std::int64_t shortest_length = 0;
  std::uint64_t seed = 1;
  DataOrder order = DataOrder::crops;
  Precision precision = Precision::automatic;
  OptimizerKind optimizer = OptimizerKind::adam;
  double learning_rate = 1e-3;  // the highest the schedule reaches
  double beta1 = 0.9;
  double beta2 = 0.98;
  double epsilon = 1e-9;
  double weight_decay = 0.0;  // adam, adafactor: L2 in the gradient; adamw, adafactorw: decoupled
  // Adafactor only (docs/facts.md C10).
  double decay_exponent = 0.8;  // step t keeps 1 - t^-this of the average of squared gradients
  double update_clip = 1.0;     // largest root mean square of a parameter's update; 0 means no clipping
  bool relative_step = true;    // steps are a share of the parameter's own root mean square
  ScheduleKind schedule = ScheduleKind::cosine;
  std::int64_t warmup_steps = 100;
  std::int64_t decay_steps = 0;         // where cosine ends; 0 means train.steps
  double final_learning_rate = 0.1;     // of cosine, as a share of learning_rate
  double clip = 1.0;                    // largest gradient norm; 0 means no clipping
  std::int64_t log_every = 10;          // steps
  std::int64_t eval_every = 250;        // steps; 0 means only at the end
  std::int64_t eval_tokens = 65536;     // of eval.split in periodic evaluations; 0 means all of it
  std::int64_t checkpoint_every = 250;  // steps; 0 means only at the end
  std::int64_t keep_checkpoints = 1;    // how many of the newest to keep, beside the best
  std::int64_t clusters_every = 100;    // steps between lines of clusters.jsonl; 0 means none
  std::int64_t sample_every = 0;        // steps between samples; 0 means none
  std::int64_t sample_tokens = 256;     // of a sample of text
  friend bool operator==(const TrainConfig&, const TrainConfig&) = default;
};

struct EvalConfig {
  std::string split = "valid";
  std::int64_t stride = 0;  // new tokens per window; 0 means disjoint windows
  std::int64_t batch_size = 4;
  // The authors' rule for word perplexity, exp(this x nats per subword): 1.248 for PG-19. 0 means by counted words.
  double subwords_per_word = 0.0;
  std::int64_t memory = 0;  // tokens that layers remember in evaluation; 0 means memory.length
  friend bool operator==(const EvalConfig&, const EvalConfig&) = default;
};

struct ExperimentConfig {
  std::string name = "unnamed";
  std::string source = "ours";  // where the values come from
  ModelConfig model = {};
  AttentionHeads attention = {};
  PatternSections patterns = {};
  MemoryConfig memory = {};
  RoutingSettings routing = routing_preset(RoutingPreset::ours, {.heads = 4, .clusters = 16, .window = 128});
  DataConfig data = {};
  TrainConfig train = {};
  EvalConfig eval = {};
  friend bool operator==(const ExperimentConfig&, const ExperimentConfig&) = default;
};

constexpr auto words_of(NormPlacement) {
  using enum NormPlacement;
  return std::to_array<Word<NormPlacement>>({{post, "post"}, {pre, "pre"}});
}
constexpr auto words_of(FeedforwardKind) {
  using enum FeedforwardKind;
  return std::to_array<Word<FeedforwardKind>>({{relu, "relu"}, {geglu, "geglu"}, {gelu, "gelu"}});
}
constexpr auto words_of(PositionKind) {
  using enum PositionKind;
  return std::to_array<Word<PositionKind>>(
      {{none, "none"}, {sinusoidal, "sinusoidal"}, {learned, "learned"}, {factored, "factored"}});
}
constexpr auto words_of(Compression) {
  using enum Compression;
  return std::to_array<Word<Compression>>(
      {{mean, "mean"}, {max, "max"}, {convolution, "convolution"}, {most_used, "most_used"}});
}
constexpr auto words_of(StartSymbol) {
  using enum StartSymbol;
  return std::to_array<Word<StartSymbol>>({{zero, "zero"}, {own, "own"}});
}
constexpr auto words_of(OptimizerKind) {
  using enum OptimizerKind;
  return std::to_array<Word<OptimizerKind>>(
      {{adam, "adam"}, {adamw, "adamw"}, {adafactor, "adafactor"}, {adafactorw, "adafactorw"}});
}
constexpr auto words_of(DataFormat) {
  using enum DataFormat;
  return std::to_array<Word<DataFormat>>({{automatic, "auto"},
                                          {bytes, "bytes"},
                                          {enwik8, "enwik8"},
                                          {wikitext, "wikitext"},
                                          {pg19, "pg19"},
                                          {text, "text"},
                                          {cifar10, "cifar10"},
                                          {imagenet64, "imagenet64"},
                                          {images, "images"},
                                          {copy, "copy"},
                                          {reverse, "reverse"},
                                          {recall, "recall"}});
}
constexpr auto words_of(TokenKind) {
  using enum TokenKind;
  return std::to_array<Word<TokenKind>>(
      {{automatic, "auto"}, {bytes, "bytes"}, {words, "words"}, {subwords, "subwords"}, {subpixels, "subpixels"}});
}
constexpr auto words_of(ScheduleKind) {
  using enum ScheduleKind;
  return std::to_array<Word<ScheduleKind>>(
      {{constant, "constant"}, {vaswani, "vaswani"}, {cosine, "cosine"}, {rsqrt, "rsqrt"}});
}
constexpr auto words_of(DataOrder) {
  using enum DataOrder;
  return std::to_array<Word<DataOrder>>({{crops, "crops"}, {contiguous, "contiguous"}});
}
constexpr auto words_of(Precision) {
  using enum Precision;
  return std::to_array<Word<Precision>>({{fp32, "fp32"}, {bf16, "bf16"}, {automatic, "auto"}});
}

// What attention.cross_content may be: none of those that compare positions, since source and target have no common
// time.
inline constexpr std::array kCrossPatterns{PatternKind::full, PatternKind::local, PatternKind::random, PatternKind::lsh,
                                           PatternKind::routing};
// What attention.content_layers says: "all", "top 2", "bottom 2", "odd", "even", "1..3".
LayerRange parse_content_layers(std::string_view text);

// The head groups of every layer, from `attention`, the sections of patterns and `routing`: local heads first, then
// those of content.
std::vector<LayerRule> layer_rules(const ExperimentConfig& config);
// The attention of one layer of the model, counted from 0 at the bottom.
AttentionConfig attention_of_layer(const ExperimentConfig& config, std::int64_t layer);

// The same for the layers of an encoder. The sections say how heads read in causal attention; here their heads read on
// both sides, so recency is off, and routed heads have keys of their own (docs/facts.md A16).
std::vector<LayerRule> encoder_layer_rules(const ExperimentConfig& config);
AttentionConfig attention_of_encoder_layer(const ExperimentConfig& config, std::int64_t layer);
// With which layer `layer` of the decoder reads the source: full heads first, then those of cross_content. No head
// shares queries and keys or knows relative positions; local heads are cut into blocks.
AttentionConfig cross_attention_of_layer(const ExperimentConfig& config, std::int64_t layer);

// Tokens that an encoder reads at most: train.source_length, or train.sequence_length where that is 0.
std::int64_t source_length(const TrainConfig& train);

// "causal", or "selection reads the future" if any layer's does. What a decoder reads of the source is never the
// future, so an encoder may select as it likes; in cross-attention it is the decoder's own queries that would compete
// with later ones.
std::string validity_label(const ExperimentConfig& config);

// Throws a ConfigError that names the key, the two values and the remedy.
void validate(const ExperimentConfig& config);

}  // namespace routing
