#include "lab/tables/table_spec.h"

#include "lab/tables/our_tables.h"
#include "lab/tables/paper_tables.h"
#include "routing/config/resolve.h"
#include "routing/config/text/number_text.h"
#include "routing/config/words.h"
#include "routing/core/error.h"
#include "routing/core/nearest_name.h"

#include <algorithm>
#include <set>
#include <sstream>

namespace routing {
namespace {

std::string guess_at(std::string_view name, const std::vector<std::string>& candidates) {
  const std::string guess = did_you_mean(name, candidates);
  return guess.empty() ? "; " : "; " + guess + " ";
}

std::vector<std::string> ids_of(const TableSpec& spec) {
  std::vector<std::string> ids;
  for (const TableRow& row : spec.rows) ids.push_back(row.id);
  return ids;
}

// Numbers are those of the list, from 1.
std::size_t index_of_number(const TableSpec& spec, std::int64_t number, const std::string& word) {
  require<ConfigError>(number >= 1 && number <= static_cast<std::int64_t>(spec.rows.size()), "`rows` ", word,
                       ": there is no row ", number, "; ", spec.name, " has rows 1 to ", spec.rows.size());
  return static_cast<std::size_t>(number - 1);
}

void require_runnable(const TableRow& row) {
  require<ConfigError>(
      !row.is_literature, "row '", row.id, "' (", row.name,
      ") is a published figure of others and cannot be run; choose rows that `table_specs` does not call "
      "reported");
}

std::vector<std::size_t> best_rows(const std::string& word, const std::vector<std::size_t>& ranked) {
  const auto count = number_in<std::int64_t>(std::string_view(word).substr(5));
  require<ConfigError>(count && *count >= 1, "`rows` ", word, ": write best:K with a whole number K of at least 1");
  require<ConfigError>(*count <= static_cast<std::int64_t>(ranked.size()), "`rows` ", word, ": only ", ranked.size(),
                       " routed rows have results so far; run more of them first, or ask for fewer");
  return {ranked.begin(), ranked.begin() + *count};
}

std::vector<std::size_t> rows_of_word(const TableSpec& spec, const std::string& word,
                                      const std::vector<std::size_t>& ranked) {
  if (word.rfind("best:", 0) == 0) return best_rows(word, ranked);
  const std::size_t dash = word.find('-');
  const auto first = number_in<std::int64_t>(std::string_view(word).substr(0, dash));
  if (!first) {
    const TableRow& row = table_row(spec, word);
    require_runnable(row);
    return {static_cast<std::size_t>(&row - spec.rows.data())};
  }
  const std::size_t begin = index_of_number(spec, *first, word);
  if (dash == std::string::npos) {
    require_runnable(spec.rows[begin]);
    return {begin};
  }
  const auto last = number_in<std::int64_t>(std::string_view(word).substr(dash + 1));
  require<ConfigError>(last && *last >= *first, "`rows` ", word, ": a range is written FIRST-LAST, such as 4-9");
  const std::size_t end = index_of_number(spec, *last, word);
  std::vector<std::size_t> rows;
  for (std::size_t row = begin; row <= end; ++row) rows.push_back(row);
  return rows;
}

// As the presets SET-causal do it: routing but for the positions inside clusters, which are those of the row's preset.
std::vector<std::string> selection_settings(RoutingSelection selection, const std::string& preset) {
  const ExperimentConfig config = resolve({.preset = preset});
  const std::string relative(to_string(config.routing.group.relative));
  std::vector<std::string> settings{"routing.preset=paper", "routing.relative=" + relative};
  if (selection == kPaperSelection) return settings;
  settings[0] = "routing.preset=ours";
  if (config.model.image_height > 0) {
    settings.insert(settings.end(),
                    {"routing.key_shift=0", "routing.learned_scale=false", "routing.self=only_if_alone"});
  }
  settings.push_back("routing.selection=" + std::string(to_string(selection)));
  return settings;
}

}  // namespace

const std::vector<TableSpec>& table_specs() {
  static const std::vector<TableSpec> specs = [] {
    std::vector<TableSpec> all = paper_tables();
    for (TableSpec& spec : our_tables()) all.push_back(std::move(spec));
    return all;
  }();
  return specs;
}

const TableSpec& table_spec(std::string_view name) {
  std::vector<std::string> names;
  for (const TableSpec& spec : table_specs()) {
    if (spec.name == name) return spec;
    names.push_back(spec.name);
  }
  throw ConfigError("there is no table '" + std::string(name) + "'" + guess_at(name, names) +
                    "`table_specs` shows all");
}

const TableRow& table_row(const TableSpec& spec, std::string_view id) {
  const auto found =
      std::find_if(spec.rows.begin(), spec.rows.end(), [&](const TableRow& row) { return row.id == id; });
  require<ConfigError>(found != spec.rows.end(), spec.name, " has no row '", id, "'", guess_at(id, ids_of(spec)),
                       "`table_specs` shows all");
  return *found;
}

std::string row_identity(const TableRow& row, RoutingSelection selection) {
  if (!row.is_routed || selection == kPaperSelection) return row.id;
  return row.id + "-" + std::string(to_string(selection));
}

ExperimentConfig row_config(const TableRow& row, const RowChoice& choice) {
  require_runnable(row);
  const RowRecipe& recipe = row.recipe(choice.scale);
  ConfigSources sources{.preset = recipe.preset, .environment = choice.environment};
  if (row.is_routed) sources.settings = selection_settings(choice.selection, recipe.preset);
  sources.settings.insert(sources.settings.end(), recipe.settings.begin(), recipe.settings.end());
  sources.settings.insert(sources.settings.end(), choice.settings.begin(), choice.settings.end());
  return resolve(sources);
}

std::vector<std::size_t> select_rows(const TableSpec& spec, const std::string& text,
                                     const std::vector<std::size_t>& ranked) {
  std::set<std::size_t> rows;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    if (word.empty()) continue;
    const std::vector<std::size_t> found = rows_of_word(spec, word, ranked);
    rows.insert(found.begin(), found.end());
  }
  if (text.empty()) {
    for (std::size_t row = 0; row < spec.rows.size(); ++row) rows.insert(row);
  }
  std::vector<std::size_t> result;
  for (const std::size_t row : rows) {
    if (!spec.rows[row].is_literature) result.push_back(row);
  }
  require<ConfigError>(!result.empty(), "`rows` ", text, ": names no row that can be run; `table_specs` shows all");
  return result;
}

}  // namespace routing
