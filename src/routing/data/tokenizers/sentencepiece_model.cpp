#include "routing/data/tokenizers/sentencepiece_model.h"

#include "routing/core/error.h"

#include <bit>
#include <charconv>

namespace routing {
namespace {

// A message of protobuf's wire format, field by field. Once something does not fit, it is over and bad.
class Fields {
 public:
  explicit Fields(std::string_view message) : rest_(message) {}

  // Goes to the next field; false at the end, and when the message is bad.
  bool next() {
    if (rest_.empty() || bad_) return false;
    const std::uint64_t key = varint();
    number_ = key >> 3U;
    kind_ = key & 7U;
    switch (kind_) {
      case 0:
        value_ = varint();
        break;
      case 1:
        bytes_ = take(8);
        break;
      case 2:
        bytes_ = take(varint());
        break;
      case 5:
        bytes_ = take(4);
        break;
      default:
        bad_ = true;
    }
    if (number_ == 0) bad_ = true;
    return !bad_;
  }

  std::uint64_t field() const { return number_; }
  bool bad() const { return bad_; }
  // The value or the bytes of the field. One of another kind makes the message bad.
  std::uint64_t value() { return kind_ == 0 ? value_ : fail(); }
  std::string_view bytes() {
    if (kind_ != 2) fail();
    return bytes_;
  }
  float number() {
    if (kind_ != 5) return static_cast<float>(fail());
    std::uint32_t bits = 0;
    for (std::size_t byte = 0; byte < 4; ++byte) {
      bits |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes_[byte])) << (8 * byte);
    }
    return std::bit_cast<float>(bits);
  }

 private:
  std::uint64_t fail() {
    bad_ = true;
    return 0;
  }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
      if (byte < 0x80) return value;
    }
    return fail();
  }

  std::string_view take(std::uint64_t size) {
    if (bad_ || size > rest_.size()) {
      bad_ = true;
      return {};
    }
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest_;
  std::uint64_t number_ = 0;
  std::uint64_t kind_ = 0;
  std::uint64_t value_ = 0;
  std::string_view bytes_;
  bool bad_ = false;
};

bool read_piece(std::string_view message, SentencePieceModel& model) {
  Piece piece;
  bool has_text = false;
  Fields fields(message);
  while (fields.next()) {
    if (fields.field() == 1) {
      piece.text = fields.bytes();
      has_text = true;
    } else if (fields.field() == 2) {
      piece.score = fields.number();
    } else if (fields.field() == 3) {
      const std::uint64_t type = fields.value();
      if (type < 1 || type > 6) return false;
      piece.type = static_cast<PieceType>(type);
    }
  }
  model.pieces.push_back(std::move(piece));
  return has_text && !fields.bad();
}

bool read_trainer(std::string_view message, SentencePieceModel& model) {
  Fields fields(message);
  while (fields.next()) {
    switch (fields.field()) {
      case 3:
        model.algorithm = static_cast<int>(fields.value());
        break;
      case 24:
        model.space_follows = fields.value() != 0;
        break;
      case 35:
        model.byte_fallback = fields.value() != 0;
        break;
      case 47:
        model.end_piece = fields.bytes();
        break;
      default:
        break;
    }
  }
  return !fields.bad();
}

bool read_normalizer(std::string_view message, SentencePieceModel& model) {
  Fields fields(message);
  while (fields.next()) {
    switch (fields.field()) {
      case 1:
        model.normalizer = fields.bytes();
        break;
      case 2:
        model.character_map = fields.bytes();
        model.changes_characters = model.changes_characters || !model.character_map.empty();
        break;
      case 3:
        model.adds_space = fields.value() != 0;
        break;
      case 4:
        model.removes_spaces = fields.value() != 0;
        break;
      case 5:
        model.marks_spaces = fields.value() != 0;
        break;
      default:
        break;
    }
  }
  return !fields.bad();
}

bool read_denormalizer(std::string_view message, SentencePieceModel& model) {
  Fields fields(message);
  while (fields.next()) {
    if (fields.field() == 2 && !fields.bytes().empty()) model.changes_characters = true;
  }
  return !fields.bad();
}

}  // namespace

std::optional<SentencePieceModel> parse_sentencepiece_model(std::string_view file) {
  SentencePieceModel model;
  Fields fields(file);
  bool good = true;
  while (good && fields.next()) {
    switch (fields.field()) {
      case 1:
        good = read_piece(fields.bytes(), model);
        break;
      case 2:
        good = read_trainer(fields.bytes(), model);
        break;
      case 3:
        good = read_normalizer(fields.bytes(), model);
        break;
      case 5:
        good = read_denormalizer(fields.bytes(), model);
        break;
      default:
        break;
    }
  }
  if (!good || fields.bad() || model.pieces.empty()) return std::nullopt;
  return model;
}

std::int32_t end_piece_of(const SentencePieceModel& model) {
  std::int32_t first_control = -1;
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    if (model.pieces[id].type != PieceType::control) continue;
    if (model.pieces[id].text == model.end_piece) return static_cast<std::int32_t>(id);
    if (first_control < 0) first_control = static_cast<std::int32_t>(id);
  }
  require<InputError>(first_control >= 0, "the SentencePiece model has no control piece such as ", model.end_piece,
                      " that could end a document; train it with one");
  return first_control;
}

std::optional<std::uint8_t> byte_of_piece(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece.back() != '>') return std::nullopt;
  std::uint8_t value = 0;
  const auto [end, failure] = std::from_chars(piece.data() + 3, piece.data() + 5, value, 16);
  if (failure != std::errc() || end != piece.data() + 5) return std::nullopt;
  return value;
}

}  // namespace routing
