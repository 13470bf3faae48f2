#include "routing/interchange/authors_variables.h"

#include "routing/config/parameter_count.h"
#include "routing/config/resolve.h"
#include "routing/core/error.h"
#include "support/message_of.h"

#include <gtest/gtest.h>

#include <map>

namespace routing::authors_variables_test {
namespace {

std::map<std::string, AuthorsVariable> by_name(const ExperimentConfig& config) {
  std::map<std::string, AuthorsVariable> all;
  for (const AuthorsVariable& variable : authors_variables(config)) {
    EXPECT_TRUE(all.emplace(variable.name, variable).second) << variable.name << " comes twice";
  }
  return all;
}

// Weights: what the moving averages of centroids are not.
std::int64_t weights_in(const std::map<std::string, AuthorsVariable>& variables) {
  std::int64_t weights = 0;
  for (const auto& [name, variable] : variables) {
    const bool average = name.ends_with("/means") || name.ends_with("/ema_means") || name.ends_with("/ema_count");
    if (!average) weights += static_cast<std::int64_t>(*count_of(variable.dimensions));
  }
  return weights;
}

TEST(AuthorsVariables, OfThePublishedPg19ModelHaveItsNamesAndShapes) {
  const ExperimentConfig config = resolve({.preset = "pg19-code"});
  const auto variables = by_name(config);
  const auto shape = [&](const std::string& name) {
    return variables.count(name) == 1 ? variables.at(name).dimensions : Dimensions{-1};
  };
  EXPECT_EQ(shape("embeddings/embedding"), (Dimensions{98302, 1032}));
  EXPECT_EQ(shape("emb_dense/kernel"), (Dimensions{1032, 1032}));
  EXPECT_EQ(shape("emb_dense/bias"), (Dimensions{1032}));
  EXPECT_EQ(shape("final_dense_2/kernel"), (Dimensions{1032, 98302}));
  EXPECT_EQ(shape("final_dense_2/bias"), (Dimensions{98302}));
  EXPECT_EQ(variables.count("final_dense_1/kernel"), 0U);
  int routed = 0;
  for (int layer = 0; layer < 22; ++layer) {
    const std::string scope = "decoder_layer_" + std::to_string(layer) + "/self_attention/";
    const std::string heads = scope + "self_attention/";
    for (const char* name : {"q", "k", "v", "output_transform"}) {
      EXPECT_EQ(shape(heads + name + "/kernel"), (Dimensions{1032, 1032}));
    }
    EXPECT_EQ(shape(heads + "attention_nd/dense/kernel"), (Dimensions{129, 129}));
    for (const char* table : {"keys", "values"}) {
      const std::string rows = std::string("/relative_positions_") + table + "/embeddings";
      EXPECT_EQ(shape(heads + "attention_nd/local_nd" + rows), (Dimensions{1027, 129}));
      if (layer >= 20) {
        EXPECT_EQ(shape(heads + "attention_nd/cluster_attention/cluster_attention" + rows), (Dimensions{1027, 129}));
      }
    }
    const std::string clusters = heads + "attention_nd/cluster_attention/cluster_attention/";
    routed += static_cast<int>(variables.count(clusters + "means"));
    if (layer >= 20) {
      EXPECT_EQ(shape(clusters + "means"), (Dimensions{2, 16, 129}));
      EXPECT_EQ(shape(clusters + "ema_means"), (Dimensions{2, 16, 129}));
      EXPECT_EQ(shape(clusters + "ema_count"), (Dimensions{2, 16}));
    }
    EXPECT_EQ(shape(scope + "ffn/conv1/kernel"), (Dimensions{1032, 4096}));
    EXPECT_EQ(shape(scope + "ffn/conv1/bias"), (Dimensions{4096}));
    EXPECT_EQ(shape(scope + "ffn/conv2/kernel"), (Dimensions{4096, 1032}));
    EXPECT_EQ(shape(scope + "ffn/conv2/bias"), (Dimensions{1032}));
    for (const char* norm : {"layer_postprocess", "layer_postprocess_1"}) {
      EXPECT_EQ(shape(scope + norm + "/layer_norm/layer_norm_scale"), (Dimensions{1032}));
      EXPECT_EQ(shape(scope + norm + "/layer_norm/layer_norm_bias"), (Dimensions{1032}));
    }
  }
  EXPECT_EQ(routed, 2);
  // 5 outside of layers, 15 per layer, 5 more per routed one; weights as docs/facts.md D counts them: 490.7 M.
  EXPECT_EQ(variables.size(), 5U + 22U * 15U + 2U * 5U);
  EXPECT_EQ(weights_in(variables), count_parameters(config).total());
  EXPECT_NEAR(static_cast<double>(weights_in(variables)) / 1e6, 490.7, 0.05);
}

TEST(AuthorsVariables, OfTheirOtherModelsCountWhatTheModelsHave) {
  for (const char* preset : {"enwik8-code", "wikitext103-code", "pg19-code"}) {
    for (const char* feedforward : {"relu", "geglu"}) {
      const ExperimentConfig config = resolve(
          {.preset = preset, .settings = {std::string("model.feedforward=") + feedforward, "model.vocab_size=267736"}});
      EXPECT_EQ(weights_in(by_name(config)), count_parameters(config).total()) << preset << " " << feedforward;
    }
  }
  const auto wikitext = by_name(resolve({.preset = "wikitext103-code", .settings = {"model.vocab_size=267736"}}));
  EXPECT_EQ(wikitext.at("final_dense_1/kernel").dimensions, (Dimensions{1024, 256}));
  EXPECT_EQ(wikitext.at("emb_dense/kernel").dimensions, (Dimensions{256, 1024}));
}

TEST(AuthorsVariables, ModelsThatComputeSomethingElseAreRefusedWithEveryKey) {
  const auto refusal = [](const std::vector<std::string>& settings) {
    return message_of<ConfigError>(
        [&] { authors_variables(resolve({.preset = "enwik8-code", .settings = settings})); });
  };
  const std::string two = refusal({"model.norm=pre", "routing.merge_eps=0"});
  EXPECT_NE(two.find("model.norm is 'pre', not 'post', routing.merge_eps is '0', not '0.01'"), std::string::npos)
      << two;
  EXPECT_NE(refusal({"model.embedding_projection=false"}).find("model.embedding_projection is 'false'"),
            std::string::npos);
  EXPECT_NE(refusal({"attention.content=lsh"}).find("attention.content is 'lsh', not 'routing' or 'local'"),
            std::string::npos);
  EXPECT_NE(refusal({"routing.relative=true_offset"}).find("routing.relative is 'true_offset'"), std::string::npos);
  EXPECT_NE(refusal({"local.relative=rank"}).find("local.relative is 'rank'"), std::string::npos);
  EXPECT_NE(refusal({"model.head_dim=64"}).find("model.head_dim is '64'"), std::string::npos);
  EXPECT_THROW(authors_variables(resolve({.preset = "tiny-enwik8"})), ConfigError);
}

TEST(AuthorsVariables, WhatIsNoWeightIsTold) {
  EXPECT_TRUE(is_no_weight("global_step"));
  EXPECT_TRUE(is_no_weight("losses_avg/problem_0/extra_loss"));
  EXPECT_TRUE(is_no_weight("training/sparse_transformer/body/emb_dense/kernel/Adafactor"));
  EXPECT_TRUE(is_no_weight("sparse_transformer/body/emb_dense/kernel/Adafactor_1"));
  EXPECT_TRUE(is_no_weight("sparse_transformer/body/emb_dense/kernel/Adam"));
  EXPECT_FALSE(is_no_weight("sparse_transformer/body/emb_dense/kernel"));
  EXPECT_FALSE(is_no_weight("sparse_transformer/body/decoder_layer_0/token_bias_weight"));
}

}  // namespace
}  // namespace routing::authors_variables_test
