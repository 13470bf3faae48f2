#include "routing/generation/text_stream.h"

#include "routing/core/error.h"
#include "routing/core/utf8.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace routing {

TextStream::TextStream(const Tokenizer& tokenizer, std::vector<std::string> stops)
    : tokenizer_(&tokenizer), stops_(std::move(stops)) {
  for (std::size_t stop = 0; stop < stops_.size(); ++stop) {
    require<ConfigError>(!stops_[stop].empty(), "stop text ", stop + 1, " of ", stops_.size(),
                         " is empty, so no text could begin; leave it out or give at least one letter");
  }
}

// Where the first stop text begins, or may begin once more bytes come; the end of the text if nowhere.
std::size_t TextStream::first_undecided(bool at_end) {
  const std::string_view held = held_;
  for (std::size_t begin = 0; begin < held.size(); ++begin) {
    const std::string_view rest = held.substr(begin);
    const auto stands_here = [&](const std::string& stop) { return rest.starts_with(stop); };
    if (std::any_of(stops_.begin(), stops_.end(), stands_here)) {
      stopped_ = true;
      return begin;
    }
    const auto may_begin_here = [&](const std::string& stop) { return std::string_view(stop).starts_with(rest); };
    if (!at_end && std::any_of(stops_.begin(), stops_.end(), may_begin_here)) return begin;
  }
  return held.size();
}

std::string TextStream::take_certain(bool at_end) {
  std::string text = held_.substr(0, first_undecided(at_end));
  if (!at_end && !stopped_) text.resize(text.size() - incomplete_utf8_tail(text));
  held_.erase(0, stopped_ ? held_.size() : text.size());
  return text;
}

std::string TextStream::add(std::int64_t id) {
  if (stopped_ || finished_) return "";
  require<InputError>(id >= 0 && id < tokenizer_->vocabulary_size(), "there is no token ", id, "; ids are 0 … ",
                      tokenizer_->vocabulary_size() - 1);
  const std::array<std::int32_t, 1> ids{static_cast<std::int32_t>(id)};
  held_ += tokenizer_->decode(ids);
  return take_certain(false);
}

std::string TextStream::finish() {
  if (stopped_ || finished_) return "";
  finished_ = true;
  return take_certain(true);
}

}  // namespace routing
