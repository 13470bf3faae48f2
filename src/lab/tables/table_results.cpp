#include "lab/tables/table_results.h"

#include "lab/measure/statistics.h"
#include "routing/core/error.h"
#include "routing/core/files.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace routing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kDone = "done";
constexpr const char* kFailed = "failed";

std::string run_name(const std::string& row, std::uint64_t seed) {
  return row + "-seed" + std::to_string(seed);
}

Json parsed(const fs::path& path) {
  try {
    return Json::parse(read_file(path));
  } catch (const nlohmann::json::exception& error) {
    throw FileError(path.string() + ": is no JSON (" + error.what() + "); remove it, and the run is evaluated again");
  }
}

// JSON knows no infinite numbers.
Json number_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

// Reads members and turns every complaint of the JSON library into one of ours.
template <class Read>
auto read_object(const std::string& origin, const Read& read) {
  try {
    return read();
  } catch (const nlohmann::json::exception& error) {
    throw FileError(origin + ": " + error.what() + "; is it a file of routing table?");
  } catch (const ConfigError& error) {
    throw FileError(origin + ": " + error.what());
  }
}

}  // namespace

std::optional<double> RowResult::number(const std::string& key) const {
  const auto found =
      std::find_if(numbers.begin(), numbers.end(), [&](const auto& entry) { return entry.first == key; });
  return found == numbers.end() ? std::nullopt : std::optional(found->second);
}

Json to_json(const TableTerms& terms) {
  return {
      {"table", terms.table}, {"scale", to_string(terms.scale)}, {"steps", terms.steps}, {"settings", terms.settings}};
}

TableTerms terms_from_json(const Json& object, const std::string& origin) {
  return read_object(origin, [&] {
    return TableTerms{.table = object.at("table").get<std::string>(),
                      .scale = parse_word<TableScale>(object.at("scale").get<std::string>(), "scale"),
                      .steps = object.at("steps").get<std::int64_t>(),
                      .settings = object.at("settings").get<std::vector<std::string>>()};
  });
}

Json to_json(const RowResult& result) {
  Json object{{"row", result.row}, {"seed", result.seed}};
  object["status"] = result.failure.empty() ? kDone : kFailed;
  if (!result.failure.empty()) object["reason"] = result.failure;
  object["metric"] = result.metric;
  const auto value = result.value();
  object["value"] = value ? number_or_null(*value) : Json(nullptr);
  object["numbers"] = Json::object();
  for (const auto& [key, number] : result.numbers) object["numbers"][key] = number_or_null(number);
  object["steps_per_second"] = result.steps_per_second;
  object["train_tokens"] = result.train_tokens;
  object["seconds"] = result.seconds;
  object["validity"] = result.validity;
  object["data_label"] = result.data_label;
  object["data_hash"] = result.data_hash;
  object.update(to_json(result.terms));
  object["date"] = result.date;
  object["version"] = result.version;
  object["host"] = result.host;
  return object;
}

RowResult result_from_json(const Json& object, const std::string& origin) {
  return read_object(origin, [&] {
    RowResult result{.terms = terms_from_json(object, origin),
                     .row = object.at("row").get<std::string>(),
                     .seed = object.at("seed").get<std::uint64_t>(),
                     .metric = object.at("metric").get<std::string>(),
                     .steps_per_second = object.at("steps_per_second").get<double>(),
                     .train_tokens = object.at("train_tokens").get<std::int64_t>(),
                     .seconds = object.at("seconds").get<double>(),
                     .validity = object.at("validity").get<std::string>(),
                     .data_label = object.at("data_label").get<std::string>(),
                     .data_hash = object.value("data_hash", ""),
                     .date = object.at("date").get<std::string>(),
                     .version = object.at("version").get<std::string>(),
                     .host = object.at("host")};
    if (object.at("status") == kFailed) result.failure = object.at("reason").get<std::string>();
    for (const auto& [key, number] : object.at("numbers").items()) {
      result.numbers.emplace_back(key,
                                  number.is_null() ? std::numeric_limits<double>::quiet_NaN() : number.get<double>());
    }
    return result;
  });
}

fs::path TableFolder::run(const std::string& row, std::uint64_t seed) const {
  return folder_ / "runs" / run_name(row, seed);
}

fs::path TableFolder::result_file(const std::string& row, std::uint64_t seed) const {
  return folder_ / "results" / (run_name(row, seed) + ".json");
}

std::optional<TableTerms> TableFolder::read_terms() const {
  if (!fs::exists(terms_file())) return std::nullopt;
  return terms_from_json(parsed(terms_file()), terms_file().string());
}

void TableFolder::write_terms(const TableTerms& terms) const {
  fs::create_directories(folder_);
  write_file_at_once(terms_file(), to_json(terms).dump(2) + "\n");
}

bool TableFolder::has_result(const std::string& row, std::uint64_t seed) const {
  return fs::exists(result_file(row, seed));
}

void TableFolder::write_result(const RowResult& result) const {
  const fs::path file = result_file(result.row, result.seed);
  fs::create_directories(file.parent_path());
  write_file_at_once(file, to_json(result).dump(2) + "\n");
}

std::vector<RowResult> TableFolder::read_results(const std::string& table) const {
  std::vector<fs::path> files;
  const fs::path folder = folder_ / "results";
  if (fs::exists(folder)) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() == ".json") files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  std::vector<RowResult> results;
  const std::optional<TableTerms> decided = read_terms();
  for (const fs::path& file : files) {
    RowResult result = result_from_json(parsed(file), file.string());
    require<FileError>(result.terms.table == table, file.string(), ": is of the table ", result.terms.table,
                       ", not of ", table, "; give every table a folder of its own");
    const TableTerms& first = decided ? *decided : results.empty() ? result.terms : results.front().terms;
    require<FileError>(result.terms == first, file.string(), ": was made as ", terms_text(result.terms), ", but ",
                       decided ? terms_file().string() : files.front().string(), " says ", terms_text(first),
                       "; only equal runs make a table");
    for (const RowResult& other : results) {
      require<FileError>(result.data_hash.empty() || other.data_hash.empty() || result.data_hash == other.data_hash,
                         file.string(), ": was trained on data ", result.data_hash, ", but ", other.row, " seed ",
                         other.seed, " on ", other.data_hash, "; only runs on the same data make a table");
    }
    results.push_back(std::move(result));
  }
  return results;
}

std::string steps_text(const TableTerms& terms) {
  return terms.steps == TableTerms::kOwnSteps ? "the steps of their presets" : std::to_string(terms.steps) + " steps";
}

std::string terms_text(const TableTerms& terms) {
  std::string text =
      "table " + terms.table + " at " + std::string(to_string(terms.scale)) + " scale, " + steps_text(terms);
  for (const std::string& setting : terms.settings) text += ", " + setting;
  return text;
}

std::vector<std::size_t> ranked_routed_rows(const TableSpec& spec, const std::vector<RowResult>& results,
                                            RoutingSelection selection) {
  std::vector<std::pair<double, std::size_t>> found;
  for (std::size_t i = 0; i < spec.rows.size(); ++i) {
    if (!spec.rows[i].is_routed) continue;
    std::vector<double> values;
    for (const RowResult& result : results) {
      const auto value = result.row == row_identity(spec.rows[i], selection) ? result.value() : std::nullopt;
      if (value && std::isfinite(*value)) values.push_back(*value);
    }
    if (!values.empty()) found.emplace_back((spec.metric.lower_is_better ? 1.0 : -1.0) * mean(values), i);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::size_t> rows;
  for (const auto& [value, row] : found) rows.push_back(row);
  return rows;
}

}  // namespace routing
