#include "serve/page/page_lines.h"

#include "serve/page/page_runs.h"
#include "serve/page/run_files.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace routing {
namespace {

using Json = nlohmann::ordered_json;

// Numbers of shares in one answer: of many large clusters there are fewer steps.
constexpr std::size_t kMostShares = 400'000;

// Which lines to tell: of training few enough, all others.
std::vector<std::size_t> chosen_lines(const GrowingLines& lines, std::size_t first) {
  std::vector<std::size_t> training;
  std::vector<std::size_t> chosen;
  for (std::size_t line = first; line < lines.size(); ++line) {
    (lines.mark(line).training ? training : chosen).push_back(line);
  }
  const std::vector<std::size_t> some = evenly_thinned(training, RunPages::kMostLines);
  const auto middle = chosen.insert(chosen.end(), some.begin(), some.end());
  std::inplace_merge(chosen.begin(), middle, chosen.end());
  return chosen;
}

void add_problem(Json& object, const GrowingLines& lines, const RunCatalog& catalog) {
  if (!lines.problem().empty()) object["problem"] = catalog.without_paths(lines.problem());
}

// The heads of a line: name, number and clusters of each.
Json heads_of(const Json& line) {
  Json heads = Json::array();
  for (const Json& head : line.at("heads")) {
    heads.push_back(
        {{"attention", head.at("attention")}, {"head", head.at("head")}, {"clusters", head.at("shares").size()}});
  }
  return heads;
}

std::size_t shares_of(const Json& heads) {
  std::size_t shares = 0;
  for (const Json& head : heads) shares += head.at("clusters").get<std::size_t>();
  return std::max<std::size_t>(1, shares);
}

// The lines, with a file that is replaced in between looked at again.
template <class Choose>
std::vector<Json> read_chosen(GrowingLines& lines, const Choose& choose) {
  constexpr int kAttempts = 3;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    lines.refresh();
    if (std::optional<std::vector<Json>> objects = lines.read(choose())) return std::move(*objects);
  }
  throw FileError("the file of the run changes faster than it can be read; ask again");
}

}  // namespace

std::size_t first_line_behind(const GrowingLines& lines, std::int64_t step) {
  std::size_t line = 0;
  while (line < lines.size() && lines.mark(line).step <= step) ++line;
  return line;
}

Json metrics_json(GrowingLines& lines, std::size_t after, const RunCatalog& catalog) {
  std::size_t from = 0;
  std::vector<Json> objects = read_chosen(lines, [&] {
    from = after > lines.size() ? 0 : after;
    return chosen_lines(lines, from);
  });
  Json answer{{"from", from}, {"next", lines.size()}, {"lines", std::move(objects)}};
  add_problem(answer, lines, catalog);
  return answer;
}

Json clusters_json(GrowingLines& lines, std::size_t first, const RunCatalog& catalog) {
  // The last line says how many shares there are, and so how many lines can be told.
  std::size_t begin = 0;
  Json heads = Json::array();
  const std::vector<Json> objects = read_chosen(lines, [&] {
    begin = std::min(first, lines.size());
    std::vector<std::size_t> all;
    for (std::size_t line = begin; line < lines.size(); ++line) {
      if (lines.mark(line).step >= 0) all.push_back(line);
    }
    const std::vector<std::size_t> last(all.empty() ? 0 : 1, all.empty() ? 0 : all.back());
    const std::optional<std::vector<Json>> newest = lines.read(last);
    heads = newest && !newest->empty() ? heads_of(newest->front()) : Json::array();
    const std::size_t most = std::min(RunPages::kMostSteps, std::max<std::size_t>(2, kMostShares / shares_of(heads)));
    return evenly_thinned(all, most);
  });
  std::int64_t after = -1;
  for (std::size_t line = 0; line < begin; ++line) after = std::max(after, lines.mark(line).step);
  Json answer{
      {"after", after}, {"heads", heads}, {"steps", Json::array()}, {"shares", Json::array()}, {"dead", Json::array()}};
  for (const Json& line : objects) {
    // Of a run that was begun anew with other heads in the same file.
    if (heads_of(line) != heads) continue;
    Json shares = Json::array();
    std::int64_t dead = 0;
    for (const Json& head : line.at("heads")) {
      shares.push_back(head.at("shares"));
      dead += head.at("dead").get<std::int64_t>();
    }
    answer["steps"].push_back(line.at("step"));
    answer["shares"].push_back(std::move(shares));
    answer["dead"].push_back(dead);
  }
  add_problem(answer, lines, catalog);
  return answer;
}

}  // namespace routing
