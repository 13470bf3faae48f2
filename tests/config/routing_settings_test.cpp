#include "routing/config/routing_settings.h"

#include "routing/core/error.h"
#include "support/experiment_cases.h"
#include "test_paths.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace routing::routing_settings_test {
namespace {

constexpr std::array kPresets{RoutingPreset::paper, RoutingPreset::code, RoutingPreset::ours};
constexpr std::array kKinds{AttentionKind::causal_self, AttentionKind::bidirectional_self, AttentionKind::cross};
constexpr std::array kModalities{Modality::text, Modality::images};

RoutingSizes sizes_of(AttentionKind kind, Modality modality = Modality::text) {
  return {.heads = 4, .clusters = 12, .window = 96, .kind = kind, .modality = modality};
}

RoutingSettings preset_of(RoutingPreset preset, AttentionKind kind = AttentionKind::causal_self,
                          Modality modality = Modality::text) {
  return routing_preset(preset, sizes_of(kind, modality));
}

AttentionConfig layer_of(const RoutingSettings& settings, AttentionKind kind) {
  return {.name = "layer 3",
          .kind = kind,
          .width = 64,
          .head_mix = settings.head_mix,
          .unused_key_columns = settings.unused_key_columns,
          .head_groups = {settings.group}};
}

std::string refusal_of_value(const std::string& key, const std::string& value) {
  RoutingSettings settings = preset_of(RoutingPreset::ours);
  return refusal_of([&] { set_routing_key(settings, key, value); });
}

void expect_part(const std::string& message, const std::string& part) {
  EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks " << part;
}

// Nothing here equals a default or a preset, so that a key without its field, or with another's, cannot hide.
RoutingSettings unlike_any_preset() {
  return unlike_defaults().routing;
}

TEST(RoutingSettings, PaperIsTheColumnPaperOfTheDesign) {
  const RoutingSettings settings = preset_of(RoutingPreset::paper);
  EXPECT_EQ(settings.routing().selection, RoutingSelection::balanced);
  EXPECT_EQ(settings.group.scale, 1.0);
  EXPECT_EQ(settings.group.self, SelfRule::allowed);
  EXPECT_EQ(settings.group.merge, Merge::mean);
  EXPECT_EQ(settings.group.merge_eps, 0.0);
  EXPECT_EQ(settings.group.relative, RelativePosition::none);
  EXPECT_EQ(settings.routing().update, CentroidUpdate::mean) << "as printed (sum) one centroid wins every token";
  EXPECT_EQ(settings.routing().decay, 0.999);
  EXPECT_EQ(settings.routing().initial_count, 1.0);
  EXPECT_FALSE(settings.routing().decay_empty);
  EXPECT_EQ(settings.routing().update_from, UpdateFrom::argmax);
  EXPECT_EQ(settings.routing().separate_update, SeparateUpdate::pooled);
  EXPECT_EQ(settings.routing().init, CentroidInit::gaussian);
  EXPECT_EQ(settings.routing().balance, RoutingBalance::none);
  EXPECT_EQ(settings.routing().commitment, 0.0);
  EXPECT_FALSE(settings.routing().scale_before_norm);
  EXPECT_FALSE(settings.head_mix);
  EXPECT_FALSE(settings.unused_key_columns);
  EXPECT_FALSE(settings.routing().revive);
}

TEST(RoutingSettings, CodeIsTheColumnCodeOfTheDesign) {
  const RoutingSettings settings = preset_of(RoutingPreset::code);
  EXPECT_EQ(settings.routing().selection, RoutingSelection::balanced);
  EXPECT_EQ(settings.group.scale, 1.0);
  EXPECT_EQ(settings.group.self, SelfRule::allowed);
  EXPECT_EQ(settings.group.merge, Merge::mean);
  EXPECT_EQ(settings.group.merge_eps, 0.01);
  EXPECT_EQ(settings.group.relative, RelativePosition::rank);
  EXPECT_EQ(settings.group.max_relative, 96) << "ranks inside a cluster differ by less than the window: never clipped";
  EXPECT_EQ(settings.routing().update, CentroidUpdate::mean);
  EXPECT_EQ(settings.routing().decay, 0.999);
  EXPECT_EQ(settings.routing().laplace, 1e-5);
  EXPECT_EQ(settings.routing().initial_count, 0.0);
  EXPECT_EQ(settings.routing().update_from, UpdateFrom::argmax);
  EXPECT_EQ(settings.routing().separate_update, SeparateUpdate::sequential);
  EXPECT_EQ(settings.routing().init, CentroidInit::gaussian);
  EXPECT_EQ(settings.routing().balance, RoutingBalance::none);
  EXPECT_EQ(settings.routing().commitment, 1e-4);
  EXPECT_TRUE(settings.routing().commitment_twice_if_shared);
  EXPECT_TRUE(settings.routing().scale_before_norm);
  EXPECT_TRUE(settings.head_mix);
  EXPECT_TRUE(settings.unused_key_columns);
  EXPECT_FALSE(settings.routing().revive);
}

TEST(RoutingSettings, OursIsTheColumnOursOfTheDesign) {
  const RoutingSettings settings = preset_of(RoutingPreset::ours);
  EXPECT_EQ(settings.routing().selection, RoutingSelection::threshold);
  EXPECT_EQ(settings.routing().max_memberships, 4);
  EXPECT_EQ(settings.group.scale, std::nullopt) << "1/sqrt(head_dim)";
  EXPECT_EQ(settings.group.self, SelfRule::allowed);
  EXPECT_EQ(settings.group.key_shift, 1);
  EXPECT_TRUE(settings.group.learned_scale);
  EXPECT_EQ(settings.group.merge, Merge::lse);
  EXPECT_EQ(settings.group.relative, RelativePosition::none);
  EXPECT_EQ(settings.routing().update, CentroidUpdate::mean);
  EXPECT_EQ(settings.routing().decay, 0.999);
  EXPECT_EQ(settings.routing().initial_count, 1.0);
  EXPECT_EQ(settings.routing().update_from, UpdateFrom::argmax);
  EXPECT_EQ(settings.routing().separate_update, SeparateUpdate::pooled);
  EXPECT_EQ(settings.routing().init, CentroidInit::gaussian);
  EXPECT_EQ(settings.routing().balance, RoutingBalance::threshold);
  EXPECT_EQ(settings.routing().balance_rate, 1.0);
  EXPECT_EQ(settings.routing().target_share, 1.0);
  EXPECT_EQ(settings.routing().commitment, 1e-4);
  EXPECT_FALSE(settings.routing().commitment_twice_if_shared);
  EXPECT_FALSE(settings.routing().scale_before_norm);
  EXPECT_FALSE(settings.head_mix);
  EXPECT_FALSE(settings.unused_key_columns);
  EXPECT_TRUE(settings.routing().revive);
}

TEST(RoutingSettings, EveryPresetHasTheSizesThatWereAskedFor) {
  for (const RoutingPreset preset : kPresets) {
    const RoutingSettings settings = preset_of(preset);
    EXPECT_EQ(settings.group.heads, 4) << to_string(preset);
    EXPECT_EQ(settings.routing().clusters, 12) << to_string(preset);
    EXPECT_EQ(settings.routing().window, 96) << to_string(preset);
  }
}

TEST(RoutingSettings, QueriesAndKeysAreSharedExactlyWhenCausal) {
  for (const RoutingPreset preset : kPresets) {
    EXPECT_TRUE(preset_of(preset, AttentionKind::causal_self).group.shared_query_key) << to_string(preset);
    EXPECT_FALSE(preset_of(preset, AttentionKind::bidirectional_self).group.shared_query_key) << to_string(preset);
    EXPECT_FALSE(preset_of(preset, AttentionKind::cross).group.shared_query_key) << to_string(preset);
  }
}

TEST(RoutingSettings, OnlyOursShiftsKeysAndOnlyInCausalText) {
  for (const RoutingPreset preset : kPresets) {
    for (const AttentionKind kind : kKinds) {
      for (const Modality modality : kModalities) {
        const bool shifts =
            preset == RoutingPreset::ours && modality == Modality::text && kind == AttentionKind::causal_self;
        EXPECT_EQ(preset_of(preset, kind, modality).group.key_shift, shifts ? 1 : 0) << to_string(preset);
        EXPECT_EQ(preset_of(preset, kind, modality).group.learned_scale, shifts) << to_string(preset);
      }
    }
  }
}

TEST(RoutingSettings, OnlyOursKeepsTokensFromReadingThemselvesAndNeverAcrossSequences) {
  for (const AttentionKind kind : kKinds) {
    EXPECT_EQ(preset_of(RoutingPreset::paper, kind).group.self, SelfRule::allowed);
    EXPECT_EQ(preset_of(RoutingPreset::code, kind).group.self, SelfRule::allowed);
  }
  EXPECT_EQ(preset_of(RoutingPreset::ours, AttentionKind::causal_self, Modality::images).group.self,
            SelfRule::only_if_alone);
  EXPECT_EQ(preset_of(RoutingPreset::ours, AttentionKind::causal_self).group.self, SelfRule::allowed)
      << "shifted keys are never the query itself";
  EXPECT_EQ(preset_of(RoutingPreset::ours, AttentionKind::bidirectional_self).group.self, SelfRule::only_if_alone);
  EXPECT_EQ(preset_of(RoutingPreset::ours, AttentionKind::cross).group.self, SelfRule::allowed);
}

TEST(RoutingSettings, OnlyCodeHasRankPositionsAndOnlyForTextOfOneSequence) {
  for (const RoutingPreset preset : kPresets) {
    for (const AttentionKind kind : kKinds) {
      for (const Modality modality : kModalities) {
        const bool ranks = preset == RoutingPreset::code && modality == Modality::text && kind != AttentionKind::cross;
        EXPECT_EQ(preset_of(preset, kind, modality).group.relative,
                  ranks ? RelativePosition::rank : RelativePosition::none)
            << to_string(preset);
      }
    }
  }
}

TEST(RoutingSettings, EveryPresetIsAValidLayerOfEveryKind) {
  for (const RoutingPreset preset : kPresets) {
    for (const AttentionKind kind : kKinds) {
      for (const Modality modality : kModalities) {
        const AttentionConfig layer = layer_of(preset_of(preset, kind, modality), kind);
        EXPECT_EQ(refusal_of([&] { validate(layer); }), "accepted") << to_string(preset);
      }
    }
  }
}

TEST(RoutingSettings, AFreshObjectHasARoutingPattern) {
  EXPECT_TRUE(std::holds_alternative<RoutingPattern>(RoutingSettings{}.group.pattern));
}

TEST(RoutingPresetWords, GoBothWaysAndUnknownOnesNameTheNearest) {
  for (const RoutingPreset preset : kPresets)
    EXPECT_EQ(parse_word<RoutingPreset>(to_string(preset), "routing preset"), preset);
  EXPECT_EQ(to_string(RoutingPreset::paper), "paper");
  EXPECT_EQ(to_string(RoutingPreset::code), "code");
  EXPECT_EQ(to_string(RoutingPreset::ours), "ours");
  EXPECT_EQ(refusal_of([] { parse_word<RoutingPreset>("papre", "routing preset"); }),
            "routing preset: 'papre' is not known; choose one of paper, code, ours (did you mean 'paper'?)");
}

TEST(RoutingKeys, AreUniqueAndBeginWithTheirTable) {
  const std::vector<std::string>& keys = routing_keys();
  EXPECT_EQ(std::set<std::string>(keys.begin(), keys.end()).size(), keys.size());
  for (const std::string& key : keys) EXPECT_EQ(key.rfind("routing.", 0), 0U) << key;
}

void copy_keys(const RoutingSettings& from, RoutingSettings& to) {
  for (const std::string& key : routing_keys()) set_routing_key(to, key, get_routing_key(from, key));
}

TEST(RoutingKeys, WritingAllKeysOfOnePresetOverAnotherGivesTheFirst) {
  for (const AttentionKind kind : kKinds) {
    for (const RoutingPreset from : kPresets) {
      for (const RoutingPreset to : kPresets) {
        RoutingSettings settings = preset_of(to, kind);
        copy_keys(preset_of(from, kind), settings);
        EXPECT_EQ(settings, preset_of(from, kind)) << to_string(from) << " over " << to_string(to);
      }
    }
  }
}

// Every field has its key and every key its own field; heads and lookahead have none and are equal on both sides.
TEST(RoutingKeys, CarryEverythingThatDiffersFromTheDefaults) {
  for (const RoutingPreset preset : kPresets) {
    RoutingSettings there = preset_of(preset);
    copy_keys(unlike_any_preset(), there);
    EXPECT_EQ(there, unlike_any_preset()) << to_string(preset);
    RoutingSettings back = unlike_any_preset();
    copy_keys(preset_of(preset), back);
    EXPECT_EQ(back, preset_of(preset)) << to_string(preset);
  }
}

TEST(RoutingKeys, EachChangesItsOwnValueOnly) {
  const RoutingSettings other = unlike_any_preset();
  for (const std::string& changed : routing_keys()) {
    const RoutingSettings before = preset_of(RoutingPreset::ours);
    RoutingSettings settings = before;
    set_routing_key(settings, changed, get_routing_key(other, changed));
    for (const std::string& key : routing_keys()) {
      EXPECT_EQ(get_routing_key(settings, key), get_routing_key(key == changed ? other : before, key))
          << changed << " -> " << key;
    }
  }
}

TEST(RoutingKeys, AnUnknownOneNamesTheNearest) {
  RoutingSettings settings = preset_of(RoutingPreset::ours);
  EXPECT_EQ(refusal_of([&] { set_routing_key(settings, "routing.windw", "4"); }),
            "unknown configuration key 'routing.windw'; did you mean 'routing.window'?");
  EXPECT_EQ(refusal_of([&] { get_routing_key(settings, "routing.clustres"); }),
            "unknown configuration key 'routing.clustres'; did you mean 'routing.clusters'?");
}

TEST(RoutingKeys, AnUnknownOneThatIsLikeNoneOffersNoEmptyName) {
  const std::string message = refusal_of_value("x", "4");
  expect_part(message, "unknown configuration key 'x'");
  EXPECT_EQ(message.find("''"), std::string::npos) << message;
}

TEST(RoutingKeys, AWrongValueIsRefusedByNameAndChangesNothing) {
  for (const std::string& key : routing_keys()) {
    for (const std::string value : {"neither this nor that", "", "4x"}) {
      const RoutingSettings before = preset_of(RoutingPreset::ours);
      RoutingSettings settings = before;
      const std::string message = refusal_of([&] { set_routing_key(settings, key, value); });
      EXPECT_EQ(message.rfind(key + ": '" + value + "' ", 0), 0U) << message;
      EXPECT_EQ(settings, before) << key;
    }
  }
}

TEST(RoutingKeys, WrongWordsAreRefusedWithTheNearest) {
  EXPECT_EQ(refusal_of_value("routing.selection", "treshold"),
            "routing.selection: 'treshold' is not known; choose one of balanced, nearest, threshold (did you mean "
            "'threshold'?)");
  expect_part(refusal_of_value("routing.self", "alowed"), "did you mean 'allowed'?");
  expect_part(refusal_of_value("routing.merge", "men"), "did you mean 'mean'?");
  expect_part(refusal_of_value("routing.relative", "true_ofset"), "did you mean 'true_offset'?");
  expect_part(refusal_of_value("routing.update", "summ"), "did you mean 'sum'?");
  expect_part(refusal_of_value("routing.update_from", "argmin"), "did you mean 'argmax'?");
  expect_part(refusal_of_value("routing.separate_update", "pooling"), "did you mean 'pooled'?");
  expect_part(refusal_of_value("routing.init", "gausian"), "did you mean 'gaussian'?");
  expect_part(refusal_of_value("routing.balance", "non"), "did you mean 'none'?");
}

TEST(RoutingKeys, WrongNumbersAreRefused) {
  for (const std::string value : {"4.5", "1e3", " 4", "4 ", "0x10", "99999999999999999999", "true"}) {
    expect_part(refusal_of_value("routing.window", value), "routing.window: '" + value + "'");
  }
  for (const std::string value : {"0,999", " 0.5", "0.5 ", "1/2", "1e", "true"}) {
    expect_part(refusal_of_value("routing.decay", value), "routing.decay: '" + value + "'");
    expect_part(refusal_of_value("routing.scale", value), "routing.scale: '" + value + "'");
  }
  expect_part(refusal_of_value("routing.scale", "1/sqrt(dim)"), "routing.scale: '1/sqrt(dim)'");
}

TEST(RoutingKeys, OnlyTrueAndFalseAreTruths) {
  for (const std::string value : {"True", "TRUE", "1", "0", "yes", "no"}) {
    EXPECT_EQ(refusal_of_value("routing.revive", value), "routing.revive: '" + value + "' is neither true nor false");
  }
  RoutingSettings settings = preset_of(RoutingPreset::ours);
  set_routing_key(settings, "routing.revive", "false");
  EXPECT_FALSE(settings.routing().revive);
  set_routing_key(settings, "routing.revive", "true");
  EXPECT_TRUE(settings.routing().revive);
}

TEST(RoutingKeys, NumbersSurviveExactly) {
  RoutingSettings settings = preset_of(RoutingPreset::ours);
  for (const double value : {0.0, 1e-4, 0.999, 0.1, 1.0 / 3.0, 1e-5, 0.9999999999999999, 123456789.25, 5e-324}) {
    settings.routing().decay = value;
    RoutingSettings other = preset_of(RoutingPreset::ours);
    set_routing_key(other, "routing.decay", get_routing_key(settings, "routing.decay"));
    EXPECT_EQ(other.routing().decay, value);
  }
  set_routing_key(settings, "routing.commitment", "1e-4");
  EXPECT_EQ(settings.routing().commitment, 1e-4);
  set_routing_key(settings, "routing.commitment", "0.0001");
  EXPECT_EQ(settings.routing().commitment, 1e-4);
  set_routing_key(settings, "routing.decay", "0.999");
  EXPECT_EQ(settings.routing().decay, 0.999);
  EXPECT_EQ(get_routing_key(settings, "routing.decay"), "0.999");
}

TEST(RoutingKeys, ScaleIsAFormulaOrANumber) {
  RoutingSettings settings = preset_of(RoutingPreset::ours);
  EXPECT_EQ(get_routing_key(settings, "routing.scale"), "1/sqrt(head_dim)");
  set_routing_key(settings, "routing.scale", "0.25");
  EXPECT_EQ(settings.group.scale, 0.25);
  EXPECT_EQ(get_routing_key(settings, "routing.scale"), "0.25");
  set_routing_key(settings, "routing.scale", "1/sqrt(head_dim)");
  EXPECT_EQ(settings.group.scale, std::nullopt);
  EXPECT_EQ(get_routing_key(preset_of(RoutingPreset::paper), "routing.scale"), "1");
}

TEST(RoutingWords, AreWhatTheConfigurationSays) {
  EXPECT_EQ(to_string(RoutingSelection::balanced), "balanced");
  EXPECT_EQ(to_string(RoutingSelection::nearest), "nearest");
  EXPECT_EQ(to_string(RoutingSelection::threshold), "threshold");
  EXPECT_EQ(to_string(RoutingBalance::threshold), "threshold");
  EXPECT_EQ(to_string(RoutingBalance::none), "none");
  EXPECT_EQ(to_string(CentroidUpdate::mean), "mean");
  EXPECT_EQ(to_string(CentroidUpdate::sum), "sum");
  EXPECT_EQ(to_string(UpdateFrom::argmax), "argmax");
  EXPECT_EQ(to_string(UpdateFrom::nearest), "nearest");
  EXPECT_EQ(to_string(UpdateFrom::members), "members");
  EXPECT_EQ(to_string(UpdateFrom::none), "none");
  EXPECT_EQ(to_string(CentroidInit::gaussian), "gaussian");
  EXPECT_EQ(to_string(CentroidInit::first_batch_kmeans), "first_batch_kmeans");
  EXPECT_EQ(to_string(SeparateUpdate::pooled), "pooled");
  EXPECT_EQ(to_string(SeparateUpdate::sequential), "sequential");
}

// Changes one thing about the routing of an otherwise good layer.
template <class Change>
std::string refusal_after(const Change& change, AttentionKind kind = AttentionKind::causal_self) {
  RoutingSettings settings = preset_of(RoutingPreset::ours, kind);
  change(settings.routing());
  return refusal_of([&] { validate(layer_of(settings, kind)); });
}

TEST(RoutingPattern, EveryRefusalNamesTheLayerTheGroupAndTheValue) {
  using P = RoutingPattern;
  expect_part(refusal_after([](P& p) { p.clusters = 0; }),
              "layer 3.head_groups[0] (routing): clusters is 0, but it must be at least 1");
  expect_part(refusal_after([](P& p) { p.window = 0; }), "window is 0, but it must be at least 1");
  expect_part(refusal_after([](P& p) { p.max_memberships = 0; }), "max_memberships is 0, but it must be at least 1");
  expect_part(refusal_after([](P& p) { p.kmeans_iterations = 0; }), "kmeans_iterations is 0");
  expect_part(refusal_after([](P& p) { p.dead_patience = 0; }), "dead_patience is 0");
  expect_part(refusal_after([](P& p) { p.decay = 1.0; }), "decay is 1, but it must be at least 0 and below 1");
  expect_part(refusal_after([](P& p) { p.decay = -0.1; }), "decay is -0.1");
  expect_part(refusal_after([](P& p) { p.laplace = -1e-5; }),
              "laplace is -1e-05, but it must be a finite number not below 0");
  expect_part(refusal_after([](P& p) { p.initial_count = -1.0; }), "initial_count is -1");
  expect_part(refusal_after([](P& p) { p.balance_rate = -0.5; }), "balance_rate is -0.5");
  expect_part(refusal_after([](P& p) { p.commitment = -1e-4; }), "commitment is -0.0001");
  expect_part(refusal_after([](P& p) { p.dead_share = -0.01; }), "dead_share is -0.01");
  expect_part(refusal_after([](P& p) { p.initial_count = p.laplace = 0.0; }), "initial_count and laplace are both 0");
  expect_part(refusal_after([](P& p) { p.target_share = 0.0; }), "target_share is 0, but");
  expect_part(refusal_after([](P& p) { p.target_share = 12.5; }), "above 0 and up to the 12 clusters");
  expect_part(refusal_after([](P& p) { p.target_share = std::numeric_limits<double>::quiet_NaN(); }),
              "target_share is");
  EXPECT_EQ(refusal_after([](P& p) { p.target_share = 12.0; }), "accepted");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  expect_part(refusal_after([&](P& p) { p.decay = nan; }), "decay is nan");
  expect_part(refusal_after([&](P& p) { p.commitment = nan; }), "commitment is nan");
}

TEST(RoutingPattern, OnlyBidirectionalNearestAndThresholdLookAhead) {
  const AttentionKind both_sides = AttentionKind::bidirectional_self;
  const auto ahead = [](RoutingPattern& p) { p.lookahead = 2; };
  const std::string remedy = "lookahead is 2, but only bidirectional nearest and threshold routing look ahead";
  expect_part(refusal_after(ahead, AttentionKind::causal_self), remedy);
  expect_part(refusal_after(ahead, AttentionKind::cross), remedy);
  const auto balanced_ahead = [](RoutingPattern& p) {
    p.selection = RoutingSelection::balanced;
    p.lookahead = 2;
  };
  expect_part(refusal_after(balanced_ahead, both_sides), remedy);
  expect_part(refusal_after([](RoutingPattern& p) { p.lookahead = -1; }, both_sides),
              "lookahead is -1, but it must be at least 0");
  EXPECT_EQ(refusal_after(ahead, both_sides), "accepted");
  EXPECT_EQ(refusal_after([](RoutingPattern& p) { p.lookahead = 0; }, both_sides), "accepted");
}

TEST(RoutingPattern, TheEdgesOfEachRangeAreAccepted) {
  const auto edges = [](RoutingPattern& p) {
    p.clusters = p.window = p.max_memberships = p.kmeans_iterations = p.dead_patience = 1;
    p.decay = p.laplace = p.balance_rate = p.commitment = p.dead_share = 0.0;
  };
  for (const AttentionKind kind : kKinds) EXPECT_EQ(refusal_after(edges, kind), "accepted");
}

TEST(RoutingPattern, HasItsName) {
  EXPECT_EQ(pattern_name(RoutingPattern{}), "routing");
}

// The cells of a row of a Markdown table, without blanks and backticks.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream stream(line.substr(1));
  for (std::string cell; std::getline(stream, cell, '|');) {
    std::erase(cell, '`');
    const std::size_t first = cell.find_first_not_of(' ');
    cells.push_back(first == std::string::npos ? "" : cell.substr(first, cell.find_last_not_of(' ') - first + 1));
  }
  return cells;
}

TEST(RoutingSettings, TheTableOfTheGuideHasEveryKeyInOrderWithThePresetsValues) {
  std::ifstream guide(std::string(ROUTING_SOURCE_DIR) + "/docs/routing.md");
  std::vector<std::string> documented;
  for (std::string line; std::getline(guide, line);) {
    if (line.rfind("| `routing.", 0) != 0) continue;
    const std::vector<std::string> cells = cells_of(line);
    ASSERT_GE(cells.size(), 4U) << line;
    documented.push_back(cells[0]);
    for (std::size_t preset = 0; preset < kPresets.size(); ++preset) {
      const RoutingSettings settings = routing_preset(kPresets[preset], {.clusters = 16, .window = 256});
      RoutingSettings written = unlike_any_preset();
      ASSERT_EQ(refusal_of([&] { set_routing_key(written, cells[0], cells[preset + 1]); }), "accepted") << line;
      EXPECT_EQ(get_routing_key(written, cells[0]), get_routing_key(settings, cells[0])) << line;
    }
  }
  EXPECT_EQ(documented, routing_keys());
}

}  // namespace
}  // namespace routing::routing_settings_test
