// What a SentencePiece model file says, read without SentencePiece: its pieces, and what it does to a text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace routing {

enum class PieceType { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

struct Piece {
  std::string text;  // with U+2581 for a space
  PieceType type = PieceType::normal;
  float score = 0.0F;
};

// The fields of the file that matter here (sentencepiece_model.proto), with the format's own defaults.
struct SentencePieceModel {
  std::vector<Piece> pieces;
  int algorithm = 1;  // 1 unigram, 2 BPE, 3 words, 4 characters
  bool byte_fallback = false;
  std::string end_piece = "</s>";
  std::string normalizer;           // its name
  std::string character_map = {};   // precompiled_charsmap: what the normaliser does to characters; empty if nothing
  bool changes_characters = false;  // before encoding, or after decoding
  bool adds_space = true;           // before the text
  bool removes_spaces = true;
  bool marks_spaces = true;    // as U+2581
  bool space_follows = false;  // the added space comes after the text (treat_whitespace_as_suffix)
};

inline constexpr int kUnigram = 1;
inline constexpr int kBytePairEncoding = 2;

// The model of a file with these bytes; nothing if they are no such model: not a protobuf message of that form, or
// without pieces.
std::optional<SentencePieceModel> parse_sentencepiece_model(std::string_view file);

// The id of the piece that ends a document: end_piece if it is a control piece, or else the first of these. An
// InputError if there is none.
std::int32_t end_piece_of(const SentencePieceModel& model);

// The value of a byte piece "<0x0A>"; nothing if it is not written so.
std::optional<std::uint8_t> byte_of_piece(std::string_view piece);

}  // namespace routing
