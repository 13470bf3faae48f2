#include "generate/generate_report.h"

#include "shell/output.h"

#include <algorithm>

namespace routing {
namespace {

// Three digits that say something.
std::string seconds_text(double seconds) {
  return fixed_digits(seconds, seconds < 1.0 ? 3 : seconds < 10.0 ? 2 : 1) + " s";
}

}  // namespace

void GenerationReport::begin_batch() {
  batch_begin_ = Clock::now();
  if (begin_ == Clock::time_point()) begin_ = batch_begin_;
  first_token_ = -1.0;
}

double GenerationReport::seconds() const {
  return std::chrono::duration<double>(Clock::now() - batch_begin_).count();
}

void GenerationReport::prompt_progress(std::int64_t tokens_read, std::int64_t tokens) {
  if (tokens_read == tokens && prompt_ < 0.0) prompt_ = seconds();
}

void GenerationReport::token(std::int64_t length) {
  if (first_token_ < 0.0) first_token_ = seconds();
  if (very_first_token_ < 0.0) very_first_token_ = first_token_;
  longest_ = std::max(longest_, length);
  ++tokens_;
}

std::string GenerationReport::summary(std::int64_t prompt_tokens, const std::string& labels) const {
  const double all = std::chrono::duration<double>(Clock::now() - begin_).count();
  std::string text = std::to_string(tokens_) + " tokens in " + seconds_text(all) + ": " +
                     fixed_digits(static_cast<double>(tokens_) / all, 0) + " tokens/s";
  if (very_first_token_ >= 0.0) text += ", first token after " + seconds_text(very_first_token_);
  if (prompt_tokens > 0) {
    text += " (prompt of " + std::to_string(prompt_tokens) + (prompt_tokens == 1 ? " token" : " tokens");
    text += (prompt_ >= 0.0 ? ": " + seconds_text(prompt_) : "") + ")";
  }
  return text + ", " + labels;
}

}  // namespace routing
