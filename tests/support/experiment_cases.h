// Configurations for tests of keys and files.
#pragma once

#include "routing/config/experiment.h"
#include "routing/core/error.h"

#include <string>

namespace routing {

// Nothing here equals a default, so that a key without its field, or with another's, cannot hide. Left out are what has
// no key: heads of a section, which attention.* gives, and lookahead, which causal attention does not have.
inline ExperimentConfig unlike_defaults() {
  const auto group_like = [](PatternConfig pattern, double scale) {
    return HeadGroupConfig{.pattern = std::move(pattern),
                           .shared_query_key = true,
                           .key_shift = 1,
                           .scale = scale,
                           .learned_scale = true,
                           .self = SelfRule::only_if_alone,
                           .merge = Merge::mean,
                           .merge_eps = scale / 3.0,
                           .relative = RelativePosition::rank,
                           .max_relative = 31,
                           .recency = true,
                           .rotary = Rotary::keys};
  };
  ExperimentConfig config{
      .name = "a \"name\" with \\ and\nlines, tab\t, \x01, \x7f and ü",
      .source = "the moon",
      .model = {.vocab_size = 300,
                .layers = 6,
                .encoder_layers = 5,
                .positions = PositionKind::learned,
                .position_stride = 59,
                .width = 96,
                .embedding_width = 48,
                .feedforward_width = 111,
                .head_dim = 24,
                .norm = NormPlacement::post,
                .feedforward = FeedforwardKind::geglu,
                .initial_scale = 0.7,
                .tied_output = true,
                .embedding_projection = true,
                .embedding_dropout = 0.1,
                .residual_dropout = 0.2,
                .attention_dropout = 0.3,
                .feedforward_dropout = 1.0 / 3.0,
                .input_dropout = 0.05,
                .start_symbol = StartSymbol::own,
                .image_height = 31,
                .image_width = 37,
                .bands = "7,70",
                .band_factor = 3.0,
                .adaptive_input = true,
                .adaptive_output = true,
                .checkpoint_activations = true},
      .attention = {.heads = 12,
                    .content_heads = 5,
                    .content = PatternKind::lsh,
                    .content_layers = "1..3",
                    .add_content = true,
                    .encoder_content = PatternKind::random,
                    .cross_heads = 3,
                    .cross_content = PatternKind::lsh},
      .memory =
          {.length = 19, .compressed = 20, .rate = 5, .compression = Compression::most_used, .reconstruction = 0.5},
      .data = {.path = "/some where/file",
               .format = DataFormat::pg19,
               .tokens = TokenKind::words,
               .split = "rest/1000/5000",
               .vocabulary = "/some where/words",
               .vocabulary_size = 4321,
               .image_size = 16,
               .require_whole = true,
               .cache = "/ca che",
               .recall_keys = 24,
               .recall_values = 8,
               .recall_filler = 5,
               .key_first = true},
      .train = {.steps = 77,
                .minutes = 2.5,
                .batch_size = 3,
                .sequence_length = 999,
                .source_length = 888,
                .accumulation = 5,
                .sequence_ranks = 3,
                .shortest_length = 555,
                .seed = 9223372036854775807U,
                .order = DataOrder::contiguous,
                .precision = Precision::bf16,
                .optimizer = OptimizerKind::adamw,
                .learning_rate = 3.0,
                .beta1 = 0.91,
                .beta2 = 0.1 + 0.2,
                .epsilon = 5e-324,
                .weight_decay = 1e22,
                .decay_exponent = 0.7,
                .update_clip = 1.5,
                .relative_step = false,
                .schedule = ScheduleKind::rsqrt,
                .warmup_steps = 7,
                .decay_steps = 70,
                .final_learning_rate = 0.25,
                .clip = 0.0,
                .log_every = 11,
                .eval_every = 12,
                .eval_tokens = 13,
                .checkpoint_every = 14,
                .keep_checkpoints = 15,
                .clusters_every = 22,
                .sample_every = 23,
                .sample_tokens = 24},
      .eval = {.split = "test", .stride = 17, .batch_size = 18, .subwords_per_word = 1.25, .memory = 21}};
  config.patterns.local = group_like(LocalPattern{.form = LocalForm::block, .window = 41, .flange = 3}, 0.5);
  config.patterns.full = group_like(FullPattern{}, 0.25);
  config.patterns.strided = group_like(StridedPattern{.stride = 42}, 2.0);
  config.patterns.random = group_like(RandomPattern{.groups = 43, .window = 44}, 1e-5);
  config.patterns.lsh = group_like(LshPattern{.buckets = 46, .rounds = 47, .window = 48}, 1.0 / 7.0);
  config.patterns.span = group_like(SpanPattern{.limit = 49, .ramp = 51, .initial = 0.125, .penalty = 3e-4}, 0.75);
  config.patterns.lsh.shared_query_key = false;
  config.patterns.lsh.self = SelfRule::allowed;
  config.patterns.fixed = group_like(FixedPattern{.stride = 49, .summary = 50}, 0.75);
  config.patterns.local2d = group_like(Local2dPattern{.rows = 51, .columns = 52, .above = 53, .beside = 54}, 1.25);
  config.routing = {.group = {.pattern = RoutingPattern{.selection = RoutingSelection::nearest,
                                                        .clusters = 3,
                                                        .window = 5,
                                                        .max_memberships = 7,
                                                        .balanced_source = false,
                                                        .norm = RoutingNorm::unit,
                                                        .scale_before_norm = true,
                                                        .balance = RoutingBalance::none,
                                                        .balance_rate = 0.3,
                                                        .target_share = 1.5,
                                                        .update = CentroidUpdate::sum,
                                                        .decay = 0.1,
                                                        .decay_empty = true,
                                                        .laplace = 0.2,
                                                        .initial_count = 2.5,
                                                        .update_from = UpdateFrom::members,
                                                        .separate_update = SeparateUpdate::sequential,
                                                        .init = CentroidInit::first_batch_kmeans,
                                                        .kmeans_iterations = 11,
                                                        .commitment = 0.7,
                                                        .commitment_twice_if_shared = true,
                                                        .revive = false,
                                                        .dead_share = 0.9,
                                                        .dead_patience = 13},
                              .heads = 4,
                              .shared_query_key = false,
                              .scale = 0.125,
                              .self = SelfRule::only_if_alone,
                              .merge = Merge::mean,
                              .merge_eps = 0.6,
                              .relative = RelativePosition::true_offset,
                              .max_relative = 17,
                              .recency = true,
                              .rotary = Rotary::values},
                    .head_mix = true,
                    .unused_key_columns = true};
  return config;
}

// The message of the error, or "accepted".
template <class Kind = ConfigError, class Action>
std::string refusal_of(const Action& action) {
  try {
    action();
  } catch (const Kind& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace routing
