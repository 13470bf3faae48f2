// What the server counts, as Prometheus reads it. Any thread may count.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

namespace routing {

// How often something took how long; the bounds are those of the class `le` of Prometheus, in seconds.
class SecondsHistogram {
 public:
  static constexpr std::array<double, 12> kBounds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                                  0.1,   0.25,   0.5,   1.0,  5.0,   30.0};
  void add(double seconds);
  void write(const std::string& name, const std::string& help, std::string& text) const;

 private:
  std::array<std::uint64_t, kBounds.size() + 1> counts_{};
  double sum_ = 0.0;
};

class ServerMetrics {
 public:
  void first_token_after(double seconds);
  // Between two tokens of one choice.
  void token_after(double seconds);
  struct Finished {
    int status = 200;  // 499 for a client that went
    double seconds = 0.0;
    std::int64_t prompt_tokens = 0;
    std::int64_t new_tokens = 0;
  };
  void finished(const Finished& request);

  // A number as it is now, beside what is counted here.
  struct Reading {
    std::string_view name = {};
    std::string_view help = {};
    std::string_view type = "gauge";
    double value = 0.0;
    std::string labels = {};  // model="quickstart"
  };
  std::string text(std::span<const Reading> readings) const;

 private:
  mutable std::mutex mutex_;
  std::map<int, std::uint64_t> completions_;  // by status
  std::uint64_t prompt_tokens_ = 0;
  std::uint64_t new_tokens_ = 0;
  SecondsHistogram first_token_;
  SecondsHistogram between_tokens_;
  SecondsHistogram whole_;
};

// A text between quotes, as Prometheus escapes it.
std::string label_value(std::string_view text);

}  // namespace routing
