#include "routing/data/tokenizers/subwords.h"

#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/core/utf8.h"
#include "routing/data/tokenizers/string_table.h"
#include "routing/data/tokenizers/subwords_library.h"
#include "routing/data/tokenizers/tokenizers.h"

#include <algorithm>
#include <utility>

namespace routing {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581
constexpr std::string_view kUnknownSurface = " \xE2\x81\x87 ";
constexpr std::size_t kLongestUnit = std::size_t{1} << 16U;
constexpr std::size_t kLongestRemembered = 64;
constexpr std::int32_t kMostRemembered = std::int32_t{1} << 20U;

std::string with_spaces(std::string_view piece) {
  std::string text;
  for (std::size_t at = 0; at < piece.size();) {
    const bool is_mark = piece.substr(at).starts_with(kSpaceMark);
    text += is_mark ? ' ' : piece[at];
    at += is_mark ? kSpaceMark.size() : 1;
  }
  return text;
}

std::string surface_of(const Piece& piece) {
  switch (piece.type) {
    case PieceType::control:
      return "";
    case PieceType::unknown:
      return std::string(kUnknownSurface);
    case PieceType::byte:
      if (const auto byte = byte_of_piece(piece.text)) return {static_cast<char>(*byte)};
      return "";
    default:
      return with_spaces(piece.text);
  }
}

// Where the model has the pieces of single bytes; -1 for those it has not.
std::array<std::int32_t, 256> byte_pieces(const SentencePieceModel& model) {
  std::array<std::int32_t, 256> places{};
  places.fill(-1);
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    if (model.pieces[id].type != PieceType::byte) continue;
    if (const auto byte = byte_of_piece(model.pieces[id].text)) places[*byte] = static_cast<std::int32_t>(id);
  }
  return places;
}

std::string losses_of(const SentencePieceModel& model, const std::array<std::int32_t, 256>& bytes) {
  std::string losses;
  const auto add = [&](bool lost, const std::string& what) {
    if (lost) losses += (losses.empty() ? "" : ", ") + what;
  };
  add(model.changes_characters, "changes characters (normalizer " + model.normalizer + ")");
  add(model.adds_space, "puts a space before every line (add_dummy_prefix)");
  add(model.removes_spaces, "drops spaces (remove_extra_whitespaces)");
  add(!model.marks_spaces, "does not mark spaces (escape_whitespaces)");
  add(!model.byte_fallback || std::find(bytes.begin(), bytes.end(), -1) != bytes.end(),
      "has no pieces for single bytes (byte_fallback)");
  return losses;
}

// A word begins before a run of spaces, and a line end is one of its own. Pieces that reach over such a place would be
// missed. Only for BPE, whose merges in one word do not depend on other words; the sums of unigram models may round
// differently in shorter texts.
bool is_word_by_word(const SentencePieceModel& model) {
  if (model.algorithm != kBytePairEncoding) return false;
  return std::none_of(model.pieces.begin(), model.pieces.end(), [](const Piece& piece) {
    if (piece.type == PieceType::control || piece.type == PieceType::unknown) return false;
    const std::string text = with_spaces(piece.text);
    const std::size_t letters = std::min(text.find_first_not_of(' '), text.size());
    return text.find(' ', letters) != std::string::npos || (text.find('\n') != std::string::npos && text.size() > 1);
  });
}

// Where the word that begins the text ends: a run of spaces and what follows it up to the next space, line end or mark.
std::size_t word_length(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && text[end] == ' ') ++end;
  for (; end < text.size() && text[end] != ' ' && text[end] != '\n'; ++end) {
    if (text[end] == kSpaceMark.front() && text.substr(end).starts_with(kSpaceMark)) break;
  }
  return end;
}

}  // namespace

// Ids of words already encoded: SentencePiece itself is some ten times slower than looking them up.
struct SubwordCache {
  StringTable words;
  std::vector<std::size_t> ends;  // of each word's ids
  std::vector<std::int32_t> ids;

  std::span<const std::int32_t> ids_of(std::int32_t word) const {
    const auto place = static_cast<std::size_t>(word);
    const std::size_t begin = place == 0 ? 0 : ends[place - 1];
    return std::span(ids).subspan(begin, ends[place] - begin);
  }
};

Subwords::Subwords(std::string model) : model_(std::move(model)) {
  const auto parsed = parse_sentencepiece_model(model_);
  require<InputError>(parsed.has_value(), "these ", model_.size(),
                      " bytes are no SentencePiece model; name a .model file that SentencePiece wrote");
  end_piece_ = end_piece_of(*parsed);
  const std::array<std::int32_t, 256> bytes = byte_pieces(*parsed);
  why_not_exact_ = losses_of(*parsed, bytes);
  word_by_word_ = exact() && is_word_by_word(*parsed);
  surfaces_.reserve(parsed->pieces.size());
  for (const Piece& piece : parsed->pieces) surfaces_.push_back(surface_of(piece));
  std::swap(surfaces_.front(), surfaces_[static_cast<std::size_t>(end_piece_)]);
  for (std::size_t byte = 0; byte < kSpaceMark.size(); ++byte) {
    const std::int32_t id = bytes[static_cast<unsigned char>(kSpaceMark[byte])];
    mark_[byte] = id == 0 ? end_piece_ : id;
  }
  loaded_ = std::make_unique<const LoadedSubwords>(model_);
}

Subwords::~Subwords() = default;

std::unique_ptr<Subwords> Subwords::load(const std::filesystem::path& path) {
  std::string model = read_file(path);
  try {
    return std::make_unique<Subwords>(std::move(model));
  } catch (const InputError& error) {
    throw FileError(path.string() + ": " + error.what());
  }
}

// How much of the text is encoded next, as one text of SentencePiece.
std::size_t Subwords::unit_length(std::string_view text) const {
  if (exact() && text.starts_with(kSpaceMark)) return kSpaceMark.size();
  const std::string_view rest = text.substr(0, kLongestUnit + 1);
  std::size_t end = 0;
  if (word_by_word_) {
    if (rest.front() == '\n') return 1;
    end = word_length(rest);
  } else {
    end = std::min(rest.find('\n'), rest.size() - 1) + 1;
    if (exact()) end = std::min(end, rest.substr(0, end).find(kSpaceMark));
  }
  if (end <= kLongestUnit) return end;
  end = kLongestUnit;
  while ((static_cast<unsigned char>(rest[end]) & 0xC0U) == 0x80U) --end;  // not inside a character
  return end;
}

void Subwords::encode_unit(std::string_view unit, SubwordCache& cache, std::vector<std::int32_t>& ids) const {
  const bool remember = word_by_word_ && unit.size() <= kLongestRemembered;
  if (remember) {
    if (const std::int32_t word = cache.words.find(unit); word != StringTable::kAbsent) {
      const auto known = cache.ids_of(word);
      ids.insert(ids.end(), known.begin(), known.end());
      return;
    }
  }
  const auto before = static_cast<std::ptrdiff_t>(ids.size());
  loaded_->encode(unit, ids);
  if (end_piece_ != 0) {
    for (auto id = ids.begin() + before; id != ids.end(); ++id) {
      if (*id == 0 || *id == end_piece_) *id = *id == 0 ? end_piece_ : 0;
    }
  }
  if (!remember || cache.words.size() >= kMostRemembered) return;
  cache.words.add(unit);
  cache.ids.insert(cache.ids.end(), ids.begin() + before, ids.end());
  cache.ends.push_back(cache.ids.size());
}

std::unique_ptr<SubwordCache> Subwords::take_cache() const {
  const std::lock_guard lock(mutex_);
  if (caches_.empty()) return std::make_unique<SubwordCache>();
  auto cache = std::move(caches_.back());
  caches_.pop_back();
  return cache;
}

void Subwords::encode(std::string_view text, std::vector<std::int32_t>& ids) const {
  const auto invalid = first_invalid_utf8(text);
  require<InputError>(!invalid, "byte ", invalid.value_or(0), " of the text is not UTF-8; subwords need UTF-8");
  std::unique_ptr<SubwordCache> cache = take_cache();
  while (!text.empty()) {
    const std::size_t length = unit_length(text);
    const std::string_view unit = text.substr(0, length);
    if (exact() && unit == kSpaceMark) {
      ids.insert(ids.end(), mark_.begin(), mark_.end());
    } else {
      encode_unit(unit, *cache, ids);
    }
    text.remove_prefix(length);
  }
  const std::lock_guard lock(mutex_);
  caches_.push_back(std::move(cache));
}

std::string Subwords::decode(std::span<const std::int32_t> ids) const {
  std::string text;
  for (const std::int32_t id : ids) {
    require_known_id(id, vocabulary_size());
    text += surfaces_[static_cast<std::size_t>(id)];
  }
  return text;
}

std::string Subwords::hash() const {
  return tokenizer_hash(kind(), model_);
}

void Subwords::save(const std::filesystem::path& path) const {
  write_file_at_once(path, model_);
}

}  // namespace routing
