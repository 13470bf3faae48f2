#include "routing/training/progress.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/core.h>
#include <string_view>

namespace routing {
namespace {

constexpr int kLongestBar = 40;
constexpr int kShortestBar = 5;

// How much is done, from 0 to 1; nothing if nobody knows.
std::optional<double> share_done(const Progress& progress) {
  std::optional<double> share;
  if (progress.total_steps && *progress.total_steps > 0) {
    share = static_cast<double>(progress.step) / static_cast<double>(*progress.total_steps);
  } else if (progress.seconds_left) {
    share = progress.seconds_elapsed / (progress.seconds_elapsed + *progress.seconds_left);
  }
  // 0 of 0 seconds.
  if (!share || !std::isfinite(*share)) return std::nullopt;
  return std::clamp(*share, 0.0, 1.0);
}

std::string bar(double share, int width) {
  const int done = static_cast<int>(std::floor(share * width));
  std::string text(static_cast<std::size_t>(done), '=');
  if (done < width) text += '>';
  text.resize(static_cast<std::size_t>(width), ' ');
  return " [" + text + "]";
}

std::string loss_text(const Progress& progress) {
  const bool large = *progress.score >= 1000.0;  // perplexities begin so
  return fmt::format("{:.{}f} {}", *progress.score, large ? 0 : 2, progress.unit);
}

std::string speed_text(double tokens_per_second) {
  return short_count(tokens_per_second) + " tokens/s";
}

std::string epochs_text(double epochs) {
  return fmt::format("{:.{}f} epochs", epochs, epochs < 10.0 ? 2 : 1);
}

std::string step_text(const Progress& progress) {
  const std::string step = std::to_string(progress.step);
  if (!progress.total_steps) return " step " + step;
  const std::string total = std::to_string(*progress.total_steps);
  return " " + std::string(total.size() - std::min(total.size(), step.size()), ' ') + step + "/" + total;
}

}  // namespace

std::string progress_line(const Progress& progress, int terminal_width) {
  const std::size_t room = static_cast<std::size_t>(std::max(terminal_width, 1)) - 1;
  const std::string steps = step_text(progress);
  const std::string time = "  " + (progress.seconds_left ? clock_text(*progress.seconds_left) + " left"
                                                         : clock_text(progress.seconds_elapsed) + " elapsed");
  const std::string loss = progress.score ? "  " + loss_text(progress) : "";
  const std::string speed = progress.tokens_per_second ? "  " + speed_text(*progress.tokens_per_second) : "";

  const std::string epochs = progress.epochs ? "  " + epochs_text(*progress.epochs) : "";

  const std::string all = loss + epochs + speed + time;
  constexpr std::size_t kAroundBar = 3;  // a space and two brackets
  const std::size_t taken = steps.size() + all.size() + kAroundBar;
  const std::optional<double> share = share_done(progress);
  if (share && taken + kShortestBar <= room) {
    return steps + bar(*share, static_cast<int>(std::min<std::size_t>(room - taken, kLongestBar))) + all;
  }
  for (const std::string& rest : {all, loss + speed + time, loss + time, time}) {
    if (steps.size() + rest.size() <= room) return steps + rest;
  }
  return steps.substr(0, room);
}

std::string plain_progress_line(const Progress& progress) {
  std::string line = "step " + std::to_string(progress.step);
  if (progress.total_steps) line += " of " + std::to_string(*progress.total_steps);
  line += ": ";
  if (progress.score) line += loss_text(progress) + ", ";
  if (progress.epochs) line += epochs_text(*progress.epochs) + ", ";
  if (progress.tokens_per_second) line += speed_text(*progress.tokens_per_second) + ", ";
  line += clock_text(progress.seconds_elapsed) + " elapsed";
  if (progress.seconds_left) line += ", " + clock_text(*progress.seconds_left) + " left";
  return line;
}

std::string clock_text(double seconds) {
  constexpr double kLongest = 1e12;  // beyond it nobody reads a clock
  if (!(seconds >= 0.0 && seconds < kLongest)) return "?";
  const std::int64_t whole = std::llround(seconds);
  const std::int64_t hours = whole / 3600 % 24;
  const std::int64_t days = whole / 86400;
  const std::int64_t minutes = whole / 60 % 60;
  if (days == 0 && hours == 0) return fmt::format("{}:{:02}", minutes, whole % 60);
  const std::string text = fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  return days == 0 ? text : std::to_string(days) + "d " + text;
}

std::string short_count(double count) {
  constexpr auto kUnits = std::to_array<std::string_view>({"", "k", "M", "G"});
  // The largest numbers that the next digit or unit would not be rounded up to.
  constexpr double kThreeDigits = 999.5;
  constexpr double kOneDigit = 9.95;
  if (!(count >= 0.0) || std::isinf(count)) return "?";
  std::size_t unit = 0;
  for (; count >= kThreeDigits && unit + 1 < kUnits.size(); ++unit) count /= 1000.0;
  return fmt::format("{:.{}f}{}", count, count < kOneDigit ? 1 : 0, kUnits.at(unit));
}

}  // namespace routing
