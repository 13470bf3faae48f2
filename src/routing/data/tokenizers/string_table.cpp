#include "routing/data/tokenizers/string_table.h"

#include "routing/core/error.h"

#include <functional>

namespace routing {
namespace {

constexpr std::size_t kFirstSlots = 1024;
constexpr std::int32_t kMostStrings = std::int32_t{1} << 30U;

std::uint64_t hash_of(std::string_view text) {
  return std::hash<std::string_view>()(text);
}

std::uint32_t tag_of(std::uint64_t hash) {
  return static_cast<std::uint32_t>(hash >> 32U);
}

}  // namespace

std::string_view StringTable::operator[](std::int32_t number) const {
  const auto place = static_cast<std::size_t>(number);
  const std::size_t begin = place == 0 ? 0 : ends_[place - 1];
  return {letters_.data() + begin, ends_[place] - begin};
}

// Where the string is, or the free slot where it would be.
std::size_t StringTable::slot_of(std::string_view text, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  while (slots_[at].number != kAbsent && (slots_[at].tag != tag_of(hash) || (*this)[slots_[at].number] != text)) {
    at = (at + 1) & mask;
  }
  return at;
}

std::int32_t StringTable::find(std::string_view text) const {
  if (slots_.empty()) return kAbsent;
  return slots_[slot_of(text, hash_of(text))].number;
}

std::int32_t StringTable::add(std::string_view text) {
  if (2 * ends_.size() >= slots_.size()) grow();
  const std::uint64_t hash = hash_of(text);
  Slot& slot = slots_[slot_of(text, hash)];
  if (slot.number == kAbsent) {
    require<InputError>(size() < kMostStrings, "a table holds ", kMostStrings, " strings at most");
    letters_.insert(letters_.end(), text.begin(), text.end());
    ends_.push_back(letters_.size());
    slot = {.tag = tag_of(hash), .number = size() - 1};
  }
  return slot.number;
}

void StringTable::grow() {
  slots_.assign(slots_.empty() ? kFirstSlots : 2 * slots_.size(), Slot{});
  for (std::int32_t number = 0; number < size(); ++number) {
    const std::uint64_t hash = hash_of((*this)[number]);
    std::size_t at = hash & (slots_.size() - 1);
    while (slots_[at].number != kAbsent) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = {.tag = tag_of(hash), .number = number};
  }
}

}  // namespace routing
