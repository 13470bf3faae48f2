#include "lab/leak/leak_text.h"

#include "routing/config/text/number_text.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <utility>

namespace routing {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kDigits = 4;

std::string fixed(double value, int digits) {
  if (std::isinf(value)) return value > 0.0 ? "∞" : "-∞";
  // No "-0.0000".
  const double half_a_digit = 0.5 * std::pow(10.0, -digits);
  return fmt::format("{:.{}f}", std::abs(value) < half_a_digit ? 0.0 : value, digits);
}

std::string with_interval(const MeanInterval& interval, const LeakUnit& unit) {
  return fixed(interval.mean * unit.factor, kDigits) + " ± " + fixed(interval.half_width * unit.factor, kDigits);
}

std::string percent(double share) {
  return fixed(100.0 * share, 0) + " %";
}

std::string share_text(const RatioInterval& share) {
  return percent(share.ratio) + " (" + percent(share.low) + " to " + percent(share.high) + ")";
}

// What stands where a difference is known to be none.
std::string difference_text(const MeanInterval& difference, const Agreement& agreement, const LeakUnit& unit) {
  if (!agreement.holds()) return with_interval(difference, unit);
  return "equal bit for bit (" + std::to_string(agreement.measured) + " compared)";
}

std::string seeds_text(const std::vector<std::uint64_t>& seeds) {
  std::string text;
  for (const std::uint64_t seed : seeds) text += (text.empty() ? "" : ", ") + std::to_string(seed);
  return text;
}

std::string row(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += " " + cell + " |";
  return text + "\n";
}

std::string header(const std::vector<std::string>& cells) {
  std::string rule = "|";
  for (std::size_t i = 0; i < cells.size(); ++i) rule += "---|";
  return row(cells) + rule + "\n";
}

std::string optional_interval(const std::optional<MeanInterval>& interval, const LeakUnit& unit) {
  return interval ? with_interval(*interval, unit) : "-";
}

bool has_seeds(const LeakReport& report) {
  return std::any_of(report.selections.begin(), report.selections.end(),
                     [](const SelectionLeak& selection) { return selection.every_token_over_seeds.has_value(); });
}

std::string seeds_table(const LeakReport& report, const LeakUnit& unit) {
  std::string text = "\nOver seeds (one value per training, 95 % interval by Student's t):\n\n";
  text += header({"selection", "seeds", "every token", "leak", "prefix only - teacher-forced"});
  for (const SelectionLeak& selection : report.selections) {
    text += row({selection.selection, seeds_text(selection.seeds),
                 optional_interval(selection.every_token_over_seeds, unit),
                 optional_interval(selection.leak_over_seeds, unit),
                 optional_interval(selection.prefix_cost_over_seeds, unit)});
  }
  return text;
}

std::string shares_table(const LeakReport& report, const LeakUnit& unit) {
  std::string text =
      "\nGain of a selection that reads the future over one that does not, teacher-forced on every token of the same "
      "windows,\nand the share of it that is leak:\n\n";
  text +=
      header({"selection", "against", "gain", "gain over seeds", "share that is leak", "share lost by prefix only"});
  for (const LeakShare& share : report.shares) {
    const bool gain = share.is_gain();
    text +=
        row({share.selection, share.reference, with_interval(share.gain, unit),
             optional_interval(share.gain_over_seeds, unit), gain ? share_text(share.leak_share) : "no gain to share",
             gain ? share_text(share.prefix_share) : "no gain to share"});
  }
  return text;
}

std::string quarters_table(const LeakReport& report, const LeakUnit& unit) {
  std::string text;
  for (const SelectionLeak& selection : report.selections) {
    if (selection.future_replaced.holds() && selection.prefix_only.holds()) continue;
    for (std::size_t quarter = 0; quarter < kQuarters; ++quarter) {
      const std::optional<LeakNumbers>& numbers = selection.quarters[quarter];
      if (!numbers) continue;
      text += row({selection.selection, std::to_string(quarter + 1), with_interval(numbers->teacher_forced, unit),
                   difference_text(numbers->leak, selection.future_replaced, unit),
                   difference_text(numbers->prefix_cost, selection.prefix_only, unit)});
    }
  }
  if (text.empty()) return text;
  return "\nBy quarter of the window, where the numbers differ:\n\n" +
         header({"selection", "quarter", "teacher-forced", "leak", "prefix only - teacher-forced"}) + text;
}

Json json_of(const MeanInterval& interval, const LeakUnit& unit) {
  return {{"mean", interval.mean * unit.factor},
          {"low", interval.low() * unit.factor},
          {"high", interval.high() * unit.factor},
          {"deviation", interval.deviation * unit.factor},
          {"values", interval.values}};
}

Json json_of(const std::optional<MeanInterval>& interval, const LeakUnit& unit) {
  return interval ? json_of(*interval, unit) : Json();
}

Json json_of(const Agreement& agreement) {
  return {{"promised", agreement.promised}, {"measured", agreement.measured}, {"different", agreement.different}};
}

Json json_of(const RatioInterval& share) {
  return {{"ratio", share.ratio}, {"low", share.low}, {"high", share.high}};
}

// The name of each number, here and in CSV.
std::vector<std::pair<std::string, MeanInterval>> named(const LeakNumbers& numbers) {
  return {{"teacher_forced", numbers.teacher_forced},
          {"future_replaced", numbers.future_replaced},
          {"prefix_only", numbers.prefix_only},
          {"leak", numbers.leak},
          {"prefix_cost", numbers.prefix_cost}};
}

Json json_of(const LeakNumbers& numbers, const LeakUnit& unit) {
  Json object;
  for (const auto& [name, interval] : named(numbers)) object[name] = json_of(interval, unit);
  return object;
}

Json json_of(const SelectionLeak& selection, const LeakUnit& unit) {
  Json object{{"selection", selection.selection},
              {"validity", selection.validity},
              {"seeds", selection.seeds},
              {"every_token", json_of(selection.every_token, unit)},
              {"sampled", json_of(selection.all, unit)},
              {"quarters", Json::array()},
              {"future_replaced_equal", json_of(selection.future_replaced)},
              {"prefix_only_equal", json_of(selection.prefix_only)},
              {"every_token_over_seeds", json_of(selection.every_token_over_seeds, unit)},
              {"leak_over_seeds", json_of(selection.leak_over_seeds, unit)},
              {"prefix_cost_over_seeds", json_of(selection.prefix_cost_over_seeds, unit)}};
  for (const auto& numbers : selection.quarters) {
    object["quarters"].push_back(numbers ? json_of(*numbers, unit) : Json());
  }
  return object;
}

Json json_of(const LeakShare& share, const LeakUnit& unit) {
  return {{"selection", share.selection},
          {"reference", share.reference},
          {"gain", json_of(share.gain, unit)},
          {"gain_over_seeds", json_of(share.gain_over_seeds, unit)},
          {"is_gain", share.is_gain()},
          {"leak_share", share.is_gain() ? json_of(share.leak_share) : Json()},
          {"prefix_share", share.is_gain() ? json_of(share.prefix_share) : Json()}};
}

}  // namespace

LeakUnit leak_unit(TokenKind tokens) {
  const double bits = 1.0 / std::log(2.0);
  if (tokens == TokenKind::bytes) return {"bits/byte", bits};
  if (tokens == TokenKind::words || tokens == TokenKind::subwords) return {"nats/token", 1.0};
  return {"bits/dim", bits};
}

std::string leak_markdown(const LeakReport& report, const LeakSource& source) {
  const LeakUnit unit = leak_unit(report.tokens);
  std::string text =
      unit.name + " at " + std::to_string(report.samples) + " sampled positions of " + std::to_string(report.windows) +
      " windows of " + std::to_string(report.sequence_length) + (source.data.empty() ? "" : ", " + source.data) +
      (source.label.empty() ? "" : ", " + source.label) + "; ± is a 95 % interval over windows, for these models.\n\n";
  text += header({"selection", "seeds", "every token, teacher-forced", "teacher-forced", "future replaced",
                  "prefix only", "leak", "prefix only - teacher-forced", "validity"});
  for (const SelectionLeak& selection : report.selections) {
    text += row({selection.selection, seeds_text(selection.seeds), with_interval(selection.every_token, unit),
                 with_interval(selection.all.teacher_forced, unit), with_interval(selection.all.future_replaced, unit),
                 with_interval(selection.all.prefix_only, unit),
                 difference_text(selection.all.leak, selection.future_replaced, unit),
                 difference_text(selection.all.prefix_cost, selection.prefix_only, unit), selection.validity});
  }
  if (has_seeds(report)) text += seeds_table(report, unit);
  if (!report.shares.empty()) text += shares_table(report, unit);
  return text + quarters_table(report, unit);
}

std::string leak_csv(const LeakReport& report) {
  const LeakUnit unit = leak_unit(report.tokens);
  std::string text = "selection,quarter,measure,mean,low,high,deviation,values,unit\n";
  const auto add = [&](const std::string& selection, std::size_t quarter, const std::string& measure,
                       const MeanInterval& value) {
    text += selection + "," + std::to_string(quarter) + "," + measure;
    for (const double number : {value.mean, value.low(), value.high(), value.deviation}) {
      text += "," + number_text(number * unit.factor);
    }
    text += "," + std::to_string(value.values) + "," + unit.name + "\n";
  };
  for (const SelectionLeak& selection : report.selections) {
    add(selection.selection, 0, "every_token", selection.every_token);
    for (const auto& [name, interval] : named(selection.all)) add(selection.selection, 0, name, interval);
    for (std::size_t quarter = 0; quarter < kQuarters; ++quarter) {
      if (!selection.quarters[quarter]) continue;
      for (const auto& [name, interval] : named(*selection.quarters[quarter])) {
        add(selection.selection, quarter + 1, name, interval);
      }
    }
  }
  for (const LeakShare& share : report.shares) add(share.selection, 0, "gain_over_" + share.reference, share.gain);
  return text;
}

std::string leak_json(const LeakReport& report, const LeakSource& source) {
  const LeakUnit unit = leak_unit(report.tokens);
  Json object{{"unit", unit.name},
              {"sequence_length", report.sequence_length},
              {"windows", report.windows},
              {"samples", report.samples}};
  if (!source.data.empty()) object["data"] = source.data;
  if (!source.label.empty()) object["data_label"] = source.label;
  object["selections"] = Json::array();
  for (const SelectionLeak& selection : report.selections) object["selections"].push_back(json_of(selection, unit));
  object["shares"] = Json::array();
  for (const LeakShare& share : report.shares) object["shares"].push_back(json_of(share, unit));
  return object.dump();
}

}  // namespace routing
