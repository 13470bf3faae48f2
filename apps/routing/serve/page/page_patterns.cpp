#include "serve/page/page_patterns.h"

#include "lab/figures/pattern_gallery.h"
#include "routing/config/attention.h"
#include "routing/core/error.h"
#include "routing/core/nearest_name.h"
#include "routing/ops/attend/visibility.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace routing {
namespace {

using Json = nlohmann::ordered_json;

struct Field {
  std::string name;
  std::int64_t usual = 0;
  std::int64_t least = 1;
  std::int64_t most = 256;
};

// The fields of a request, all there and within their limits.
using Values = std::map<std::string, std::int64_t>;

struct PagePattern {
  std::string name;
  std::string about;
  std::vector<Field> fields;
  std::function<HeadGroupConfig(const Values&)> group;
};

const Field kWindow{.name = "window", .usual = 8};
const Field kClusters{.name = "clusters", .usual = 6, .most = 64};
const Field kSeed{.name = "seed", .usual = 1, .least = 0, .most = 1000000};

HeadGroupConfig routed(RoutingSelection selection, const Values& values) {
  return {.pattern = RoutingPattern{.selection = selection,
                                    .clusters = values.at("clusters"),
                                    .window = values.at("window"),
                                    .decay = 0.9,
                                    .init = CentroidInit::first_batch_kmeans},
          .shared_query_key = true};
}

std::vector<PagePattern> all_patterns() {
  const std::vector<Field> routing_fields{kClusters, {.name = "window", .usual = 16}, kSeed};
  return {
      {"full", "every input up to the row's own", {}, [](const Values&) { return HeadGroupConfig{}; }},
      {"local",
       "the last inputs",
       {kWindow},
       [](const Values& values) { return HeadGroupConfig{.pattern = LocalPattern{.window = values.at("window")}}; }},
      {"local, block",
       "its own block and those before",
       {kWindow, {.name = "flange", .usual = 1, .least = 0, .most = 8}},
       [](const Values& values) {
         return HeadGroupConfig{
             .pattern =
                 LocalPattern{.form = LocalForm::block, .window = values.at("window"), .flange = values.at("flange")}};
       }},
      {"local, 2 dimensions",
       "pixels of an image around its own block, three values each",
       {{.name = "rows", .usual = 2, .most = 64},
        {.name = "columns", .usual = 2, .most = 64},
        {.name = "above", .usual = 1, .least = 0, .most = 64},
        {.name = "beside", .usual = 1, .least = 0, .most = 64},
        {.name = "image_width", .usual = 5, .most = 64}},
       [](const Values& values) {
         return HeadGroupConfig{.pattern = Local2dPattern{.rows = values.at("rows"),
                                                          .columns = values.at("columns"),
                                                          .above = values.at("above"),
                                                          .beside = values.at("beside"),
                                                          .image_width = values.at("image_width")}};
       }},
      {"strided",
       "every so many inputs",
       {{.name = "stride", .usual = 8}},
       [](const Values& values) { return HeadGroupConfig{.pattern = StridedPattern{.stride = values.at("stride")}}; }},
      {"fixed",
       "the last inputs of each stretch, which sum it up",
       {{.name = "stride", .usual = 8}, {.name = "summary", .usual = 2}},
       [](const Values& values) {
         return HeadGroupConfig{.pattern =
                                    FixedPattern{.stride = values.at("stride"), .summary = values.at("summary")}};
       }},
      {"random",
       "groups of random inputs",
       {{.name = "groups", .usual = 8, .most = 64}, kWindow, kSeed},
       [](const Values& values) {
         return HeadGroupConfig{.pattern = RandomPattern{.groups = values.at("groups"), .window = values.at("window")}};
       }},
      {"LSH",
       "the last of its bucket: like vectors fall into the same (Reformer)",
       {{.name = "buckets", .usual = 8, .least = 2, .most = 64},
        {.name = "rounds", .usual = 1, .most = 8},
        {.name = "window", .usual = 16},
        kSeed},
       [](const Values& values) {
         return HeadGroupConfig{.pattern = LshPattern{.buckets = values.at("buckets"),
                                                      .rounds = values.at("rounds"),
                                                      .window = values.at("window")},
                                .shared_query_key = true};
       }},
      {"routing, balanced", "the best of each centroid, over the whole sequence (the paper): reads the future",
       routing_fields, [](const Values& values) { return routed(RoutingSelection::balanced, values); }},
      {"routing, nearest", "the last of its cluster, one for each input", routing_fields,
       [](const Values& values) { return routed(RoutingSelection::nearest, values); }},
      {"routing, threshold", "the last of every cluster whose threshold it passes", routing_fields,
       [](const Values& values) { return routed(RoutingSelection::threshold, values); }},
  };
}

// A whole number of the request within its limits.
std::int64_t number_of(const Json& request, const Field& field) {
  const auto found = request.find(field.name);
  if (found == request.end() || found->is_null()) return field.usual;
  const bool fits = found->is_number_integer() && *found >= field.least && *found <= field.most;
  require<ConfigError>(fits, field.name, " is ", found->dump(), ", but must be a whole number, ", field.least, " to ",
                       field.most);
  return found->get<std::int64_t>();
}

const PagePattern& chosen(const std::vector<PagePattern>& patterns, const Json& request) {
  const auto given = request.find("pattern");
  require<ConfigError>(given != request.end() && given->is_string(), "pattern is missing; give the name of one");
  const auto name = given->get<std::string>();
  std::vector<std::string> names;
  for (const PagePattern& pattern : patterns) {
    if (pattern.name == name) return pattern;
    names.push_back(pattern.name);
  }
  const std::string guess = did_you_mean(name, names);
  throw ConfigError("there is no pattern '" + name + "'" +
                    (guess.empty() ? "; GET /api/patterns lists them" : "; " + guess));
}

void refuse_other_fields(const Json& request, const PagePattern& pattern) {
  std::vector<std::string> known{"pattern", "n", "causal"};
  for (const Field& field : pattern.fields) known.push_back(field.name);
  for (const auto& [name, value] : request.items()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string guess = did_you_mean(name, known);
    throw ConfigError("the pattern '" + pattern.name + "' has no field '" + name + "'" +
                      (guess.empty() ? "" : "; " + guess));
  }
}

// S_i of every row: its keys, ascending, each with the first group through which it is read.
Json rows_of(const Plan& plan) {
  const auto views = shared_views(plan);
  const auto* offsets = plan.query_index.offsets.data_ptr<std::int64_t>();
  const auto* groups = plan.query_index.group.data_ptr<std::int64_t>();
  const auto* ranks = plan.query_index.rank.data_ptr<std::int32_t>();
  Json rows = Json::array();
  for (std::int64_t query = 0; query < plan.num_queries; ++query) {
    std::map<std::int32_t, std::int64_t> group_of;  // of each key
    for (std::int64_t entry = offsets[query]; entry < offsets[query + 1]; ++entry) {
      const std::int64_t number = views->group_offsets[static_cast<std::size_t>(groups[entry])] + ranks[entry];
      const QueryView& view = views->views[static_cast<std::size_t>(number)];
      const auto* keys = plan.key_order.data_ptr<std::int32_t>() + group_range(plan, groups[entry]).k_begin;
      for (std::int32_t rank = view.key_from; rank < view.key_to; ++rank) {
        if (views->counts(number, rank)) group_of.emplace(keys[rank], groups[entry]);
      }
    }
    Json row{{"keys", Json::array()}, {"groups", Json::array()}};
    for (const auto& [key, group] : group_of) {
      row["keys"].push_back(key);
      row["groups"].push_back(group);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

Json page_patterns() {
  Json patterns = Json::array();
  for (const PagePattern& pattern : all_patterns()) {
    Json fields = Json::array();
    for (const Field& field : pattern.fields) {
      fields.push_back({{"name", field.name}, {"default", field.usual}, {"least", field.least}, {"most", field.most}});
    }
    patterns.push_back({{"name", pattern.name}, {"about", pattern.about}, {"fields", std::move(fields)}});
  }
  return {{"patterns", std::move(patterns)}};
}

Json page_pattern_rows(const Json& request) {
  require<ConfigError>(request.is_object(), "the request must be an object with the fields pattern and n");
  const std::vector<PagePattern> patterns = all_patterns();
  const PagePattern& pattern = chosen(patterns, request);
  refuse_other_fields(request, pattern);
  const std::int64_t n = number_of(request, {.name = "n", .usual = 64, .least = 1, .most = kMostPatternTokens});
  const auto causal = request.find("causal");
  require<ConfigError>(causal == request.end() || causal->is_boolean(), "causal must be true or false");
  Values values;
  for (const Field& field : pattern.fields) values[field.name] = number_of(request, field);
  const auto run = static_cast<std::int64_t>(std::lround(std::sqrt(static_cast<double>(n)) / 2.0));
  const Plan plan =
      plan_over_mixture(pattern.group(values), {.n = n,
                                                .run = std::max<std::int64_t>(1, run),
                                                .seed = static_cast<std::uint64_t>(number_of(request, kSeed)),
                                                .causal = causal == request.end() || causal->get<bool>()});
  return {{"n", n}, {"rows", rows_of(plan)}};
}

}  // namespace routing
