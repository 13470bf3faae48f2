#include "serve/server_metrics.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <set>

namespace routing {
namespace {

void write_head(const std::string& name, std::string_view help, std::string_view type, std::string& text) {
  fmt::format_to(std::back_inserter(text), "# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

}  // namespace

void SecondsHistogram::add(double seconds) {
  const auto* const bound = std::lower_bound(kBounds.begin(), kBounds.end(), seconds);
  ++counts_.at(static_cast<std::size_t>(bound - kBounds.begin()));
  sum_ += seconds;
}

void SecondsHistogram::write(const std::string& name, const std::string& help, std::string& text) const {
  write_head(name, help, "histogram", text);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kBounds.size(); ++i) {
    sum += counts_[i];
    fmt::format_to(std::back_inserter(text), "{}_bucket{{le=\"{}\"}} {}\n", name, kBounds[i], sum);
  }
  sum += counts_.back();
  fmt::format_to(std::back_inserter(text), "{}_bucket{{le=\"+Inf\"}} {}\n{}_sum {}\n{}_count {}\n", name, sum, name,
                 sum_, name, sum);
}

void ServerMetrics::first_token_after(double seconds) {
  const std::lock_guard lock(mutex_);
  first_token_.add(seconds);
}

void ServerMetrics::token_after(double seconds) {
  const std::lock_guard lock(mutex_);
  between_tokens_.add(seconds);
}

void ServerMetrics::finished(const Finished& request) {
  const std::lock_guard lock(mutex_);
  ++completions_[request.status];
  prompt_tokens_ += static_cast<std::uint64_t>(request.prompt_tokens);
  new_tokens_ += static_cast<std::uint64_t>(request.new_tokens);
  if (request.status == 200) whole_.add(request.seconds);
}

std::string ServerMetrics::text(std::span<const Reading> readings) const {
  std::string text;
  const std::lock_guard lock(mutex_);
  write_head("routing_completions_total", "Completions by the status they ended with; 499: the client went.", "counter",
             text);
  for (const auto& [status, count] : completions_) {
    fmt::format_to(std::back_inserter(text), "routing_completions_total{{status=\"{}\"}} {}\n", status, count);
  }
  const auto write_counter = [&](const char* name, const char* help, std::uint64_t value) {
    write_head(name, help, "counter", text);
    fmt::format_to(std::back_inserter(text), "{} {}\n", name, value);
  };
  write_counter("routing_prompt_tokens_total", "Tokens of prompts of completions that ended.", prompt_tokens_);
  write_counter("routing_completion_tokens_total", "Tokens drawn by completions that ended.", new_tokens_);
  first_token_.write("routing_time_to_first_token_seconds", "From a request's arrival to its first token.", text);
  between_tokens_.write("routing_time_between_tokens_seconds", "Between two tokens of a request's first choice.", text);
  whole_.write("routing_completion_seconds", "From a request's arrival to its end.", text);
  std::set<std::string_view> named;
  for (const Reading& reading : readings) {
    if (named.insert(reading.name).second) write_head(std::string(reading.name), reading.help, reading.type, text);
    const std::string labels = reading.labels.empty() ? std::string() : "{" + reading.labels + "}";
    fmt::format_to(std::back_inserter(text), "{}{} {}\n", reading.name, labels, reading.value);
  }
  return text;
}

std::string label_value(std::string_view text) {
  std::string value;
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') value += '\\';
    if (letter == '\n') {
      value += "\\n";
    } else {
      value += letter;
    }
  }
  return value;
}

}  // namespace routing
