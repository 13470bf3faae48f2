#include "routing/data/tokenizers/tokenizers.h"

#include "data/source_support.h"
#include "data/temporary_folder.h"
#include "routing/core/error.h"
#include "routing/data/tokenizers/byte_tokenizer.h"
#include "routing/data/tokenizers/word_vocabulary.h"

#include <string>
#include <vector>

namespace routing::tokenizers_test {
namespace {

using Ids = std::vector<std::int32_t>;

TEST(ByteTokenizerTest, IdsAreTheBytesAndBack) {
  const ByteTokenizer bytes;
  Ids ids{5};
  const std::string text("\0a\xff\n", 4);
  bytes.encode(text, ids);
  EXPECT_EQ(ids, (Ids{5, 0, 97, 255, 10}));
  EXPECT_EQ(bytes.decode(std::span(ids).subspan(1)), text);
  EXPECT_EQ(bytes.kind(), "bytes");
  EXPECT_EQ(bytes.vocabulary_size(), 256);
  EXPECT_EQ(bytes.end_id(), -1);
  EXPECT_EQ(message_of<InputError>([&] { bytes.decode(Ids{256}); }), "there is no token 256; ids are 0 … 255");
}

class TokenizersTest : public TemporaryFolderTest {};

TEST_F(TokenizersTest, EveryKindComesFromWhatItSaved) {
  ByteTokenizer().save(folder() / "bytes");
  EXPECT_FALSE(std::filesystem::exists(folder() / "bytes"));
  EXPECT_EQ(load_tokenizer("bytes", "")->hash(), ByteTokenizer().hash());
  const WordVocabulary words({"<eos>", "a", "<unk>"});
  words.save(folder() / "words");
  const auto loaded = load_tokenizer("words", folder() / "words");
  EXPECT_EQ(loaded->kind(), "words");
  EXPECT_EQ(loaded->hash(), words.hash());
}

TEST_F(TokenizersTest, OtherKindsAreRefusedWithTheNearest) {
  EXPECT_EQ(message_of<ConfigError>([] { load_tokenizer("word", ""); }),
            "there are no tokens of the kind 'word', only bytes, words and subwords; did you mean 'words'?");
}

// The first is that of the bytes "bytes" and NUL, as xxhsum -H64 prints it.
TEST(TokenizerHash, IsThatOfKindAndFile) {
  EXPECT_EQ(tokenizer_hash("bytes", ""), "04a391c0b493c18f");
  EXPECT_EQ(tokenizer_hash("words", "<eos>\n<unk>\n"), "f7c51afe07530e00");
  EXPECT_EQ(tokenizer_hash("words", "<eos>\n<unk>\n"), WordVocabulary({"<eos>", "<unk>"}).hash());
}

}  // namespace
}  // namespace routing::tokenizers_test
