#include "routing/config/keys.h"

#include "support/experiment_cases.h"
#include "test_paths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace routing::keys_test {
namespace {

std::string refusal_of_value(const std::string& key, const std::string& value) {
  ExperimentConfig config;
  return refusal_of([&] { set_key(config, key, value); });
}

std::size_t keys_beginning_with(const std::string& section) {
  return static_cast<std::size_t>(
      std::count_if(experiment_keys().begin(), experiment_keys().end(),
                    [&](const std::string& key) { return key.starts_with(section + "."); }));
}

// How many members an aggregate has: as many as it can be initialised with.
struct Anything {
  template <class T>
  operator T() const;  // NOLINT: converts to any member, and is never called
};
template <class T, class... Members>
consteval std::size_t number_of_members() {
  if constexpr (requires { T{Members{}..., Anything{}}; }) {
    return number_of_members<T, Members..., Anything>();
  } else {
    return sizeof...(Members);
  }
}

TEST(ExperimentKeys, AreUniqueAndSectionsStandTogether) {
  const std::vector<std::string>& keys = experiment_keys();
  EXPECT_EQ(std::set<std::string>(keys.begin(), keys.end()).size(), keys.size());
  std::vector<std::string> sections;
  for (const std::string& key : keys) {
    const std::string section = key.substr(0, key.find('.') == std::string::npos ? 0 : key.find('.'));
    if (sections.empty() || sections.back() != section) sections.push_back(section);
  }
  EXPECT_EQ(sections,
            (std::vector<std::string>{"", "model", "attention", "local", "full", "strided", "random", "lsh", "fixed",
                                      "local2d", "span", "memory", "routing", "data", "train", "eval"}));
}

TEST(ExperimentKeys, EveryMemberOfEveryStructureHasOne) {
  EXPECT_EQ(number_of_members<ExperimentConfig>(), 10U) << "name, source and eight parts";
  EXPECT_EQ(number_of_members<ModelConfig>(), keys_beginning_with("model"));
  EXPECT_EQ(number_of_members<AttentionHeads>(), keys_beginning_with("attention"));
  EXPECT_EQ(number_of_members<PatternSections>(), 8U);
  EXPECT_EQ(number_of_members<MemoryConfig>(), keys_beginning_with("memory"));
  EXPECT_EQ(number_of_members<DataConfig>(), keys_beginning_with("data"));
  EXPECT_EQ(number_of_members<TrainConfig>(), keys_beginning_with("train"));
  EXPECT_EQ(number_of_members<EvalConfig>(), keys_beginning_with("eval"));
  // Its pattern, heads and whether they are added have no key: attention.* says so.
  const std::size_t of_group = number_of_members<HeadGroupConfig>() - 3;
  EXPECT_EQ(of_group, 11U);
  EXPECT_EQ(keys_beginning_with("full"), of_group);
  EXPECT_EQ(keys_beginning_with("local"), of_group + number_of_members<LocalPattern>() - 1) << "no lookahead";
  EXPECT_EQ(keys_beginning_with("strided"), of_group + number_of_members<StridedPattern>());
  EXPECT_EQ(keys_beginning_with("random"), of_group + number_of_members<RandomPattern>());
  EXPECT_EQ(keys_beginning_with("lsh"), of_group + number_of_members<LshPattern>() - 1) << "no lookahead";
  EXPECT_EQ(keys_beginning_with("fixed"), of_group + number_of_members<FixedPattern>());
  EXPECT_EQ(keys_beginning_with("local2d"), of_group + number_of_members<Local2dPattern>() - 1)
      << "the width of the image is model.image_width";
  EXPECT_EQ(keys_beginning_with("span"), of_group + number_of_members<SpanPattern>());
  EXPECT_EQ(keys_beginning_with("routing"), of_group + number_of_members<RoutingPattern>() - 1 + 2)
      << "no lookahead; head_mix and unused_key_columns";
}

TEST(ExperimentKeys, EachCanBeChangedAndReadBackAndChangesNothingElse) {
  const ExperimentConfig other = unlike_defaults();
  for (const std::string& changed : experiment_keys()) {
    const ExperimentConfig before;
    ExperimentConfig config;
    ASSERT_NE(get_key(other, changed), get_key(before, changed)) << changed;
    set_key(config, changed, get_key(other, changed));
    for (const std::string& key : experiment_keys()) {
      EXPECT_EQ(get_key(config, key), get_key(key == changed ? other : before, key)) << changed << " -> " << key;
    }
  }
}

TEST(ExperimentKeys, CarryEverythingThatDiffersFromTheDefaults) {
  ExperimentConfig there;
  ExperimentConfig back = unlike_defaults();
  for (const std::string& key : experiment_keys()) {
    set_key(there, key, get_key(unlike_defaults(), key));
    set_key(back, key, get_key(ExperimentConfig{}, key));
  }
  EXPECT_EQ(there, unlike_defaults());
  EXPECT_EQ(back, ExperimentConfig{});
}

TEST(ExperimentKeys, ReachTheirOwnFields) {
  ExperimentConfig config;
  set_key(config, "train.steps", "7");
  set_key(config, "train.precision", "auto");
  set_key(config, "model.norm", "post");
  set_key(config, "local.window", "9");
  set_key(config, "local.scale", "0.5");
  set_key(config, "lsh.buckets", "6");
  set_key(config, "routing.window", "11");
  set_key(config, "attention.content_layers", "top 2");
  EXPECT_EQ(config.train.steps, 7);
  EXPECT_EQ(config.train.precision, Precision::automatic);
  EXPECT_EQ(config.model.norm, NormPlacement::post);
  EXPECT_EQ(std::get<LocalPattern>(config.patterns.local.pattern).window, 9);
  EXPECT_EQ(config.patterns.local.scale, 0.5);
  EXPECT_EQ(std::get<LshPattern>(config.patterns.lsh.pattern).buckets, 6);
  EXPECT_EQ(config.routing.routing().window, 11);
  EXPECT_EQ(config.attention.content_layers, "top 2");
  set_key(config, "local.scale", "1/sqrt(head_dim)");
  EXPECT_EQ(config.patterns.local.scale, std::nullopt);
}

TEST(ExperimentKeys, AnUnknownOneNamesTheNearest) {
  EXPECT_EQ(refusal_of_value("trian.steps", "4"),
            "unknown configuration key 'trian.steps'; did you mean 'train.steps'?");
  EXPECT_EQ(refusal_of_value("steps", "4"), "unknown configuration key 'steps'; did you mean 'train.steps'?");
  EXPECT_EQ(refusal_of_value("routing.preste", "ours"),
            "unknown configuration key 'routing.preste'; did you mean 'routing.preset'?");
  EXPECT_EQ(refusal_of_value("?", "4"), "unknown configuration key '?'; docs/configuration.md lists them");
  EXPECT_EQ(refusal_of([] { get_key({}, "model.widht"); }),
            "unknown configuration key 'model.widht'; did you mean 'model.width'?");
  EXPECT_EQ(refusal_of([] { key_description("model.widht"); }),
            "unknown configuration key 'model.widht'; did you mean 'model.width'?");
}

TEST(ExperimentKeys, AWrongValueIsRefusedByNameAndChangesNothing) {
  const std::set<std::string> any_text{"name", "source", "data.path", "data.vocabulary", "data.cache"};
  for (const std::string& key : experiment_keys()) {
    if (any_text.contains(key)) continue;
    for (const std::string value : {"neither this nor that", "", "4x"}) {
      if (key == "model.bands" && value.empty()) continue;  // one band
      ExperimentConfig config;
      const std::string message = refusal_of([&] { set_key(config, key, value); });
      EXPECT_TRUE(message.starts_with(key + ": '" + value + "'")) << key << " = " << value << ": " << message;
      EXPECT_EQ(config, ExperimentConfig{}) << key;
    }
  }
}

TEST(ExperimentKeys, ARefusalSaysWhatTheValueMustBe) {
  EXPECT_EQ(refusal_of_value("train.steps", "ten"), "train.steps: 'ten' is not a whole number");
  EXPECT_EQ(refusal_of_value("train.steps", "1e3"), "train.steps: '1e3' is not a whole number");
  EXPECT_EQ(refusal_of_value("train.seed", "-1"), "train.seed: '-1' is below 0");
  EXPECT_EQ(refusal_of_value("train.seed", "9223372036854775808"),
            "train.seed: '9223372036854775808' is not a whole number");
  EXPECT_EQ(refusal_of_value("train.clip", "inf"), "train.clip: 'inf' is not a number");
  EXPECT_EQ(refusal_of_value("train.clip", "nan"), "train.clip: 'nan' is not a number");
  EXPECT_EQ(refusal_of_value("model.tied_output", "yes"), "model.tied_output: 'yes' is neither true nor false");
  EXPECT_EQ(refusal_of_value("train.schedule", "cosin"),
            "train.schedule: 'cosin' is not known; choose one of constant, vaswani, cosine, rsqrt (did you mean "
            "'cosine'?)");
  EXPECT_EQ(refusal_of_value("attention.content", "ruoting"),
            "attention.content: 'ruoting' is not known; choose one of local, full, strided, random, lsh, routing, "
            "fixed, local2d, span (did "
            "you mean 'routing'?)");
  EXPECT_EQ(refusal_of_value("eval.split", "vaild"),
            "eval.split: 'vaild' is not known; choose one of train, valid, test (did you mean 'valid'?)");
}

TEST(RoutingPresetKey, ResetsTheSectionButKeepsClustersWindowAndHeads) {
  for (const RoutingPreset preset : {RoutingPreset::paper, RoutingPreset::code, RoutingPreset::ours}) {
    ExperimentConfig config = unlike_defaults();
    set_key(config, "routing.preset", std::string(to_string(preset)));
    RoutingSettings expected = routing_preset(preset, {.heads = 4, .clusters = 3, .window = 5});
    expected.group.max_relative = 0;  // the window, whatever it becomes
    EXPECT_EQ(config.routing, expected) << to_string(preset);
    ExperimentConfig rest = unlike_defaults();
    rest.routing = config.routing;
    EXPECT_EQ(config, rest) << "nothing else changes";
  }
  EXPECT_EQ(refusal_of_value("routing.preset", "oures"),
            "routing.preset: 'oures' is not known; choose one of paper, code, ours (did you mean 'ours'?)");
}

TEST(RoutingPresetKey, CannotBeReadAndIsNoneOfTheKeys) {
  EXPECT_EQ(refusal_of([] { get_key({}, "routing.preset"); }),
            "routing.preset cannot be read, because it stands for all of routing.*; read those");
  EXPECT_EQ(std::count(experiment_keys().begin(), experiment_keys().end(), "routing.preset"), 0);
  EXPECT_NE(key_description("routing.preset").find("paper, code or ours"), std::string::npos);
}

TEST(ApplySettings, TakesTheRoutingPresetFirstWhereverItStands) {
  ExperimentConfig config;
  apply_settings(config, {{"routing.selection", "nearest", "a"}, {"routing.preset", "code", "b"}});
  EXPECT_EQ(config.routing.routing().selection, RoutingSelection::nearest);
  EXPECT_TRUE(config.routing.head_mix) << "code has it";
}

TEST(ApplySettings, TakesTheOthersInOrder) {
  ExperimentConfig config;
  apply_settings(config, {{"train.steps", "5", "a"}, {"train.steps", "6", "b"}});
  EXPECT_EQ(config.train.steps, 6);
}

TEST(ApplySettings, NamesTheOriginOfAnErrorAndThenChangesNothing) {
  ExperimentConfig config;
  EXPECT_EQ(refusal_of([&] {
              apply_settings(config, {{"train.steps", "5", "there"}, {"model.width", "wide", "here"}});
            }),
            "here: model.width: 'wide' is not a whole number");
  EXPECT_EQ(config, ExperimentConfig{});
}

TEST(KeyDescriptions, AreOneLineThatATableCanHold) {
  for (const std::string& key : experiment_keys()) {
    const std::string& description = key_description(key);
    EXPECT_FALSE(description.empty()) << key;
    EXPECT_EQ(description.find_first_of("|\n`"), std::string::npos) << key;
    EXPECT_LE(description.size(), 100U) << key;
  }
}

TEST(ConfigurationGuide, ItsTableHasEveryKeyInOrderWithDefaultAndDescription) {
  std::ifstream guide(std::string(ROUTING_SOURCE_DIR) + "/docs/configuration.md");
  std::vector<std::string> rows;
  for (std::string line; std::getline(guide, line);) {
    if (line.starts_with("| `")) rows.push_back(line);
  }
  std::vector<std::string> expected;
  for (const std::string& key : experiment_keys()) {
    const std::string value = get_key(ExperimentConfig{}, key);
    expected.push_back("| `" + key + "` | " + (value.empty() ? "" : "`" + value + "` ") + "| " + key_description(key) +
                       " |");
  }
  EXPECT_EQ(rows, expected);
}

}  // namespace
}  // namespace routing::keys_test
