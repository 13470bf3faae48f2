// Subwords as tokens, by SentencePiece (Kudo and Richardson 2018).
#pragma once

#include "routing/data/tokenizers/sentencepiece_model.h"
#include "routing/data/tokenizers/tokenizer.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace routing {

class LoadedSubwords;
struct SubwordCache;

// A model made here (see SubwordTrainer) or brought by a user.
//
// ids       Those of the model, but for its end piece (</s>), which changes places with piece 0: so 0 ends a document
//           with every model. It never comes out of a text, not even out of the letters "</s>".
// lines     Each line is encoded on its own, with its line end, so it does not matter how a text is cut into lines. A
//           line of more than 64 KiB without a space may be cut.
// exact     decode(encode(text)) is the text, byte for byte, for every UTF-8 text, if the model changes no characters,
//           adds and removes no spaces and has pieces for all 256 bytes, as models made here have. U+2581, which
//           SentencePiece uses for the space, is then written as its three bytes. For other models why_not_exact()
//           says what is lost; their ids are those that SentencePiece gives each line.
//
// decode() of an end piece or another control piece is nothing, of an unknown piece " ⁇ ", of a byte piece that byte:
// ids that a model has made up need not be UTF-8.
//
// encode() throws an InputError for a text that is not UTF-8. It remembers the words it has seen (up to some 100 MB for
// each thread that encodes at the same time) and may be called from several threads.
class Subwords : public Tokenizer {
 public:
  // From the bytes of a model file. Throws  InputError  they are no SentencePiece model, or one without a control piece
  //                                                     that could end a document
  //                                         FileError   the plug-in with SentencePiece is not there
  explicit Subwords(std::string model);
  // From a .model file; a FileError with its path if it cannot be read or is none.
  static std::unique_ptr<Subwords> load(const std::filesystem::path& path);
  ~Subwords() override;

  std::string kind() const override { return "subwords"; }
  std::int64_t vocabulary_size() const override { return static_cast<std::int64_t>(surfaces_.size()); }
  std::int64_t end_id() const override { return 0; }
  void encode(std::string_view text, std::vector<std::int32_t>& ids) const override;
  std::string decode(std::span<const std::int32_t> ids) const override;
  std::string hash() const override;
  void save(const std::filesystem::path& path) const override;

  bool exact() const { return why_not_exact_.empty(); }
  // "puts a space before every line (add_dummy_prefix)"; several with commas; empty if exact.
  const std::string& why_not_exact() const { return why_not_exact_; }

 private:
  std::size_t unit_length(std::string_view text) const;
  void encode_unit(std::string_view unit, SubwordCache& cache, std::vector<std::int32_t>& ids) const;
  std::unique_ptr<SubwordCache> take_cache() const;

  std::string model_;
  std::unique_ptr<const LoadedSubwords> loaded_;
  std::vector<std::string> surfaces_;   // what decode() writes, by id
  std::array<std::int32_t, 3> mark_{};  // the ids of U+2581, if exact
  std::int32_t end_piece_ = 0;          // its id in the model
  std::string why_not_exact_;
  bool word_by_word_ = false;  // no piece reaches over the start of a word, so words can be encoded one by one
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<SubwordCache>> caches_;  // those not in use
};

}  // namespace routing
