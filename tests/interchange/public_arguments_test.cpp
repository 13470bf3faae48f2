#include "routing/interchange/public_arguments.h"

#include "routing/core/error.h"
#include "support/message_of.h"

#include <gtest/gtest.h>

namespace routing::public_arguments_test {
namespace {

PublicArguments found_in_tensors() {
  return {.num_tokens = 256,
          .dim = 512,
          .depth = 4,
          .max_seq_len = 4096,
          .heads = 8,
          .dim_head = 64,
          .clusters = 32,
          .hidden = 2048,
          .local_heads = {8, 8, 4, 4},
          .rotary_local_heads = true};
}

PublicArguments with(GivenArguments given) {
  PublicArguments arguments = found_in_tensors();
  given.insert({"causal", "true"});
  apply_given_arguments(arguments, given);
  return arguments;
}

std::string refusal(const GivenArguments& given) {
  return message_of<ConfigError>([&] { with(given); });
}

TEST(PublicArguments, DefaultsAreThoseOfTheConstructor) {
  const PublicArguments arguments = with({});
  EXPECT_EQ(arguments.window_size, 128);
  EXPECT_EQ(arguments.local_window, 128);
  EXPECT_EQ(arguments.local_radius, 1);
  EXPECT_FALSE(arguments.relu);
  EXPECT_EQ(arguments.ema_decay, 0.999);
  EXPECT_EQ(arguments.commitment, 1e-4);
}

TEST(PublicArguments, GivenOnesThatAgreeAreTaken) {
  const PublicArguments arguments = with({{"dim", "512"},
                                          {"window_size", "128"},
                                          {"n_local_attn_heads", "(8, 8, 4, 4)"},
                                          {"local_attn_window_size", "256"},
                                          {"local_attn_radius_blocks", "2"},
                                          {"ff_activation", "nn.ReLU"},
                                          {"emb_dim", "None"},
                                          {"ff_dropout", "0.1"},
                                          {"kmeans_ema_decay", "0.99"},
                                          {"commitment_factor", "0"},
                                          {"pkm_layers", "[]"},
                                          {"tie_embedding", "False"}});
  EXPECT_EQ(arguments.local_window, 256);
  EXPECT_EQ(arguments.local_radius, 2);
  EXPECT_TRUE(arguments.relu);
  EXPECT_EQ(arguments.ema_decay, 0.99);
  EXPECT_EQ(arguments.commitment, 0.0);
}

TEST(PublicArguments, ContradictionsAreErrorsWithBothValues) {
  const std::string message = refusal({{"heads", "4"}, {"window_size", "64"}, {"n_local_attn_heads", "4"}});
  EXPECT_NE(message.find("heads is given as 4, but the tensors say 8"), std::string::npos) << message;
  EXPECT_NE(message.find("window_size is given as 64, but the tensors say 128"), std::string::npos) << message;
  EXPECT_NE(message.find("n_local_attn_heads is given as '4', but the tensors say (8,8,4,4)"), std::string::npos);
  EXPECT_NE(refusal({{"tie_embedding", "true"}}).find("the tensors say 'false'"), std::string::npos);
}

TEST(PublicArguments, WhatHasNoCounterpartIsNamed) {
  PublicArguments arguments = found_in_tensors();
  EXPECT_NE(message_of<ConfigError>([&] { apply_given_arguments(arguments, {}); }).find("give causal=true"),
            std::string::npos);
  EXPECT_NE(message_of<ConfigError>([&] {
              apply_given_arguments(arguments, {{"causal", "False"}});
            }).find("causal is 'False', which has no counterpart here; only 'true' has"),
            std::string::npos);
  EXPECT_NE(refusal({{"reversible", "True"}}).find("reversible is 'True'"), std::string::npos);
  EXPECT_NE(refusal({{"pkm_layers", "(4,)"}}).find("pkm_layers is '(4,)'"), std::string::npos);
  EXPECT_NE(refusal({{"ff_activation", "nn.SiLU"}}).find("GELU and ReLU have"), std::string::npos);
  EXPECT_NE(refusal({{"windowsize", "4"}}).find("did you mean 'window_size'?"), std::string::npos);
  EXPECT_NE(refusal({{"dim", "many"}}).find("dim is 'many', which is not a number"), std::string::npos);
  arguments = found_in_tensors();
  arguments.clusters = 0;
  arguments.local_heads = {8, 8, 8, 8};
  EXPECT_NE(message_of<ConfigError>([&] {
              apply_given_arguments(arguments, {{"causal", "true"}});
            }).find("local_attn_window_size is not given"),
            std::string::npos);
}

TEST(PublicArguments, RoutedLayersHaveAWord) {
  const auto word = [](const std::vector<std::int64_t>& local) {
    PublicArguments arguments = found_in_tensors();
    arguments.depth = static_cast<std::int64_t>(local.size());
    arguments.local_heads = local;
    return routed_layers(arguments);
  };
  EXPECT_EQ(word({8, 8, 4, 4}), "2..3");
  EXPECT_EQ(word({4, 8, 8, 8}), "0..0");
  EXPECT_EQ(word({4, 4}), "all");
  EXPECT_EQ(word({8, 8}), "");
  EXPECT_EQ(word({8, 4, 8, 4}), "odd");
  EXPECT_EQ(word({4, 8, 4, 8}), "even");
  EXPECT_THROW(word({4, 8, 8, 4}), ConfigError);
  EXPECT_NE(message_of<ConfigError>([&] { word({8, 4, 2}); }).find("n_local_attn_heads is 4 and 2"), std::string::npos);
}

}  // namespace
}  // namespace routing::public_arguments_test
