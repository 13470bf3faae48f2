#include "routing/data/tokenizers/subwords_json.h"

#include "routing/core/base64.h"
#include "routing/core/error.h"
#include "routing/core/utf8.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace routing {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSpaceMark = "\xE2\x96\x81";  // U+2581

std::size_t character_length(std::string_view text) {
  std::size_t length = 1;
  while (length < text.size() && (static_cast<unsigned char>(text[length]) & 0xC0U) == 0x80U) ++length;
  return length;
}

bool is_one_character(std::string_view text) {
  return character_length(text) == text.size();
}

Json replace(const char* kind, const char* pattern, const char* content) {
  return {{"type", "Replace"}, {"pattern", {{kind, pattern}}}, {"content", content}};
}

// What every later step takes for granted: texts that JSON can hold, scores that can be compared, and pieces short
// enough that all the ways to cut them can be tried. SentencePiece makes pieces of at most some dozen letters.
void require_plain_pieces(const SentencePieceModel& model) {
  constexpr std::size_t kLongest = 4096;
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    const Piece& piece = model.pieces[id];
    require<InputError>(!first_invalid_utf8(piece.text), "piece ", id,
                        " of the SentencePiece model is not UTF-8, which a tokenizer.json has to be");
    require<InputError>(std::isfinite(piece.score), "piece ", id, " of the SentencePiece model has the score ",
                        piece.score, ", but finite numbers are expected; the file is damaged");
    require<InputError>(piece.text.size() <= kLongest, "piece ", id, " of the SentencePiece model has ",
                        piece.text.size(), " bytes, but at most ", kLongest, " are expected; the file is damaged");
  }
}

// SentencePiece finds user-defined pieces before it changes characters, a tokenizer.json after. That is the same where
// the map leaves them alone: both of Unicode's common forms keep what is visible in ASCII.
void require_kept_pieces(const SentencePieceModel& model) {
  if (model.character_map.empty()) return;
  const bool keeps_ascii = model.normalizer == "nmt_nfkc" || model.normalizer == "nfkc";
  for (const Piece& piece : model.pieces) {
    const bool visible =
        std::all_of(piece.text.begin(), piece.text.end(), [](char letter) { return letter > ' ' && letter < 0x7F; });
    require<InputError>(piece.type != PieceType::user_defined || (keeps_ascii && visible), "the user-defined piece '",
                        piece.text, "' might be changed by the model's normalizer ", model.normalizer,
                        ", from which SentencePiece keeps it; a tokenizer.json cannot say that");
  }
}

// What SentencePiece does to each line, done to all lines at once. A line end may have become a space.
Json normalizer_of(const SentencePieceModel& model) {
  const Json next_lines = replace("Regex", "\n(?=[\\s\\S])", "\n ");
  std::vector<Json> steps;
  if (model.adds_space && !model.removes_spaces) steps.push_back(next_lines);
  if (!model.character_map.empty()) {
    steps.push_back({{"type", "Precompiled"}, {"precompiled_charsmap", to_base64(model.character_map)}});
  }
  if (model.removes_spaces) {
    steps.push_back(replace("Regex", R"(\A +| +\z)", ""));
    steps.push_back(replace("Regex", "\n +", "\n"));
    steps.push_back(replace("Regex", " {2,}", " "));
    if (model.adds_space) steps.push_back(next_lines);
  }
  if (model.adds_space) steps.push_back({{"type", "Prepend"}, {"prepend", " "}});
  steps.push_back(replace("String", " ", kSpaceMark));
  return {{"type", "Sequence"}, {"normalizers", steps}};
}

// The pairs of pieces that make a piece, those of the best score first. Where a piece can be made in several ways, the
// way with the longest left part comes first: of two that overlap it is the left one, which SentencePiece takes.
Json merges_of(const SentencePieceModel& model) {
  std::unordered_map<std::string_view, const Piece*> normal;
  for (const Piece& piece : model.pieces) {
    if (piece.type == PieceType::normal) normal.emplace(piece.text, &piece);
  }
  std::vector<const Piece*> made;
  for (const Piece& piece : model.pieces) {
    if (piece.type == PieceType::normal && !is_one_character(piece.text)) made.push_back(&piece);
  }
  std::stable_sort(made.begin(), made.end(), [](const Piece* a, const Piece* b) { return a->score > b->score; });
  Json merges = Json::array();
  for (std::size_t i = 0; i < made.size(); ++i) {
    const std::string_view whole = made[i]->text;
    require<InputError>(i == 0 || made[i - 1]->score != made[i]->score, "the pieces '", made[i == 0 ? 0 : i - 1]->text,
                        "' and '", whole,
                        "' of the BPE model have the same score, so that which is made first depends ",
                        "on the text; a tokenizer.json cannot say that");
    std::vector<std::size_t> cuts;
    for (std::size_t cut = character_length(whole); cut < whole.size(); cut += character_length(whole.substr(cut))) {
      cuts.insert(cuts.begin(), cut);
    }
    for (const std::size_t cut : cuts) {
      const std::string_view left = whole.substr(0, cut);
      const std::string_view right = whole.substr(cut);
      for (const std::string_view part : {left, right}) {
        require<InputError>(!is_one_character(part) || normal.count(part) == 1, "the character '", part,
                            "' of the piece '", whole,
                            "' is no piece of the BPE model itself, but merges in a tokenizer.json need it");
      }
      if (normal.count(left) == 1 && normal.count(right) == 1) {
        merges.push_back(std::string(left) + " " + std::string(right));
      }
    }
  }
  return merges;
}

std::string unknown_piece(const SentencePieceModel& model) {
  for (const Piece& piece : model.pieces) {
    if (piece.type == PieceType::unknown) return piece.text;
  }
  throw InputError("the SentencePiece model has no piece for what is unknown, which a tokenizer.json needs");
}

// Control pieces cannot come out of a text: no merge makes them.
Json bpe_of(const SentencePieceModel& model) {
  Json vocabulary = Json::object();
  std::int64_t id = 0;
  for (const Piece& piece : model.pieces) {
    require<InputError>(piece.type != PieceType::unused, "the BPE model has the unused piece '", piece.text,
                        "', which SentencePiece takes apart again; a tokenizer.json cannot say that");
    require<InputError>(piece.type != PieceType::user_defined || is_one_character(piece.text),
                        "the BPE model has the user-defined piece '", piece.text,
                        "', which comes out of a text before any merge; a tokenizer.json of ours can say that of ",
                        "single characters alone");
    vocabulary[piece.text] = id++;
  }
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", unknown_piece(model)},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", true},
          {"byte_fallback", model.byte_fallback},
          {"vocab", vocabulary},
          {"merges", merges_of(model)}};
}

// Every piece of the list can come out of a text there, and in SentencePiece only normal and user-defined ones do. A
// name with a space in it cannot: spaces are marked by then. Pieces of bytes keep their names, which the reader looks
// up; see pre_tokenizer_of().
Json unigram_of(const SentencePieceModel& model) {
  float lowest = std::numeric_limits<float>::max();
  float highest = std::numeric_limits<float>::lowest();
  for (const Piece& piece : model.pieces) {
    if (piece.type != PieceType::normal) continue;
    lowest = std::min(lowest, piece.score);
    highest = std::max(highest, piece.score);
  }
  Json vocabulary = Json::array();
  std::int64_t unknown = 0;
  for (const Piece& piece : model.pieces) {
    switch (piece.type) {
      case PieceType::normal:
        vocabulary.push_back(Json::array({piece.text, piece.score}));
        break;
      case PieceType::user_defined:
        // As SentencePiece scores it, so that it is always chosen.
        vocabulary.push_back(Json::array({piece.text, static_cast<double>(piece.text.size()) * highest - 0.1}));
        break;
      case PieceType::byte:
        vocabulary.push_back(Json::array({piece.text, lowest}));
        break;
      case PieceType::unknown:
        unknown = static_cast<std::int64_t>(vocabulary.size());
        [[fallthrough]];
      case PieceType::control:
      case PieceType::unused:
        vocabulary.push_back(Json::array({" " + piece.text, lowest}));
        break;
    }
  }
  unknown_piece(model);
  return {{"type", "Unigram"}, {"unk_id", unknown}, {"vocab", vocabulary}, {"byte_fallback", model.byte_fallback}};
}

Json split(const char* kind, const char* pattern, const char* behaviour) {
  return {{"type", "Split"}, {"pattern", {{kind, pattern}}}, {"behavior", behaviour}, {"invert", false}};
}

// Lines apart. The letters "<0x0A>" of a text are no byte: in a unigram model, where they could be read as one, they
// are taken apart.
Json pre_tokenizer_of(const SentencePieceModel& model) {
  const Json lines = split("String", "\n", "MergedWithPrevious");
  if (model.algorithm != kUnigram || !model.byte_fallback) return lines;
  return {{"type", "Sequence"}, {"pretokenizers", {lines, split("Regex", "<(?=0x[0-9A-F]{2}>)", "Isolated")}}};
}

}  // namespace

SubwordsJson subwords_json(SentencePieceModel model) {
  require_plain_pieces(model);
  require<InputError>(model.algorithm == kUnigram || model.algorithm == kBytePairEncoding,
                      "the SentencePiece model is of algorithm ", model.algorithm,
                      ", but a tokenizer.json has unigram (1) and BPE (2); train one of these");
  require<InputError>(model.marks_spaces, "the SentencePiece model does not mark spaces (escape_whitespaces), which a ",
                      "tokenizer.json of ours needs; train one that does");
  require<InputError>(!model.space_follows, "the SentencePiece model puts a space after each line ",
                      "(treat_whitespace_as_suffix), which a tokenizer.json of ours cannot say");
  require_kept_pieces(model);
  std::swap(model.pieces.front(), model.pieces[static_cast<std::size_t>(end_piece_of(model))]);
  const Json decoder{
      {"type", "Sequence"},
      {"decoders", {replace("String", kSpaceMark, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}}}};
  return {.normalizer = normalizer_of(model),
          .pre_tokenizer = pre_tokenizer_of(model),
          .decoder = decoder,
          .model = model.algorithm == kUnigram ? unigram_of(model) : bpe_of(model)};
}

}  // namespace routing
