// SentencePiece models written by hand, byte by byte, for tests.
#pragma once

#include "routing/data/tokenizers/sentencepiece_model.h"

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace routing {

inline std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7U) bytes += static_cast<char>(0x80U | (value & 0x7FU));
  return bytes + static_cast<char>(value);
}

inline std::string number_field(unsigned number, std::uint64_t value) {
  return varint(number << 3U) + varint(value);
}

inline std::string bytes_field(unsigned number, std::string_view bytes) {
  return varint(number << 3U | 2U) + varint(bytes.size()) + std::string(bytes);
}

inline std::string piece_field(const Piece& piece, float score) {
  std::string bits = varint(2U << 3U | 5U);
  for (unsigned shift = 0; shift < 32; shift += 8) {
    bits += static_cast<char>(std::bit_cast<std::uint32_t>(score) >> shift & 0xFFU);
  }
  return bytes_field(1, bytes_field(1, piece.text) + bits + number_field(3, static_cast<std::uint64_t>(piece.type)));
}

// Later pieces have lower scores, so earlier ones are merged first.
inline std::string written(const SentencePieceModel& model) {
  std::string file;
  float score = 0;
  for (const Piece& piece : model.pieces) file += piece_field(piece, score--);
  file += bytes_field(2, number_field(3, static_cast<std::uint64_t>(model.algorithm)) +
                             number_field(35, model.byte_fallback ? 1 : 0) + bytes_field(47, model.end_piece));
  file +=
      bytes_field(3, bytes_field(1, model.normalizer) + number_field(3, model.adds_space ? 1 : 0) +
                         number_field(4, model.removes_spaces ? 1 : 0) + number_field(5, model.marks_spaces ? 1 : 0));
  return file;
}

inline void add_byte_pieces(SentencePieceModel& model) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  for (unsigned byte = 0; byte < 256; ++byte) {
    model.pieces.push_back({std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">", PieceType::byte});
  }
}

// <unk>, <s>, </s> as SentencePiece numbers them unless told otherwise, then 256 bytes from id 3 on, then the rest.
inline SentencePieceModel small_exact_model(const std::vector<std::string>& pieces) {
  SentencePieceModel model;
  model.pieces = {{"<unk>", PieceType::unknown}, {"<s>", PieceType::control}, {"</s>", PieceType::control}};
  add_byte_pieces(model);
  for (const std::string& piece : pieces) model.pieces.push_back({piece, PieceType::normal});
  model.algorithm = kBytePairEncoding;
  model.byte_fallback = true;
  model.normalizer = "identity";
  model.adds_space = false;
  model.removes_spaces = false;
  return model;
}

}  // namespace routing
