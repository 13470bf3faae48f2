#include "routing/data/tokenizers/sentencepiece_model.h"

#include "data/tokenizers/model_writer.h"
#include "routing/core/error.h"

#include <gtest/gtest.h>

#include <string>

namespace routing::sentencepiece_model_test {
namespace {

TEST(SentencePieceModelTest, EveryFieldIsRead) {
  SentencePieceModel model = small_exact_model({"a",
                                                "\xE2\x96\x81"
                                                "a"});
  model.end_piece = "<end>";
  const auto parsed = parse_sentencepiece_model(written(model));
  ASSERT_TRUE(parsed.has_value());
  ASSERT_EQ(parsed->pieces.size(), 261U);
  EXPECT_EQ(parsed->pieces[0].type, PieceType::unknown);
  EXPECT_EQ(parsed->pieces[2].type, PieceType::control);
  EXPECT_EQ(parsed->pieces[13].text, "<0x0A>");
  EXPECT_EQ(parsed->pieces[13].type, PieceType::byte);
  EXPECT_EQ(parsed->pieces[260].text,
            "\xE2\x96\x81"
            "a");
  EXPECT_EQ(parsed->pieces[260].type, PieceType::normal);
  EXPECT_EQ(parsed->algorithm, kBytePairEncoding);
  EXPECT_TRUE(parsed->byte_fallback);
  EXPECT_EQ(parsed->end_piece, "<end>");
  EXPECT_EQ(parsed->normalizer, "identity");
  EXPECT_FALSE(parsed->adds_space);
  EXPECT_FALSE(parsed->removes_spaces);
  EXPECT_TRUE(parsed->marks_spaces);
  EXPECT_FALSE(parsed->changes_characters);
}

TEST(SentencePieceModelTest, ScoresTheMapAndTheEndPieceAreFound) {
  const std::string file = piece_field({"<s>", PieceType::control}, 0.0F) + piece_field({"a"}, -2.5F) +
                           piece_field({"</s>", PieceType::control}, 0.0F) + bytes_field(2, number_field(24, 1)) +
                           bytes_field(3, bytes_field(2, "a map"));
  const auto parsed = parse_sentencepiece_model(file);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->pieces[1].score, -2.5F);
  EXPECT_EQ(parsed->character_map, "a map");
  EXPECT_TRUE(parsed->space_follows);
  EXPECT_EQ(end_piece_of(*parsed), 2);
  SentencePieceModel other = *parsed;
  other.end_piece = "<end>";
  EXPECT_EQ(end_piece_of(other), 0) << "the first control piece";
  other.pieces = {{"a"}};
  EXPECT_THROW(end_piece_of(other), InputError);
}

TEST(SentencePieceModelTest, AbsentFieldsHaveTheDefaultsOfTheFormat) {
  const auto parsed = parse_sentencepiece_model(bytes_field(1, bytes_field(1, "a")));
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->pieces.front().type, PieceType::normal);
  EXPECT_EQ(parsed->algorithm, 1);
  EXPECT_FALSE(parsed->byte_fallback);
  EXPECT_EQ(parsed->end_piece, "</s>");
  EXPECT_TRUE(parsed->adds_space);
  EXPECT_TRUE(parsed->removes_spaces);
  EXPECT_TRUE(parsed->marks_spaces);
}

TEST(SentencePieceModelTest, CharacterMapsAreSeenInBothDirections) {
  const std::string piece = bytes_field(1, bytes_field(1, "a"));
  EXPECT_TRUE(parse_sentencepiece_model(piece + bytes_field(3, bytes_field(2, "map")))->changes_characters);
  EXPECT_TRUE(parse_sentencepiece_model(piece + bytes_field(5, bytes_field(2, "map")))->changes_characters);
  EXPECT_FALSE(parse_sentencepiece_model(piece + bytes_field(3, bytes_field(2, "")))->changes_characters);
}

TEST(SentencePieceModelTest, FieldsOfLaterVersionsAreSkipped) {
  const std::string file = number_field(90, 300) + bytes_field(91, "x") + varint(92U << 3U | 1U) + "12345678" +
                           varint(93U << 3U | 5U) + "1234" + bytes_field(1, bytes_field(1, "a") + bytes_field(50, "y"));
  const auto parsed = parse_sentencepiece_model(file);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->pieces.front().text, "a");
}

TEST(SentencePieceModelTest, OtherBytesAreNoModel) {
  for (const std::string& file : {std::string(), std::string("The quick brown fox\n"), std::string("{\"model\": {}}"),
                                  std::string(100, '\0'), std::string(100, '\xff'), std::string("\x0a"),
                                  bytes_field(3, bytes_field(1, "no pieces")), bytes_field(1, number_field(3, 1)),
                                  bytes_field(1, bytes_field(1, "a") + number_field(3, 9)), number_field(1, 7)}) {
    EXPECT_FALSE(parse_sentencepiece_model(file).has_value()) << file;
  }
}

TEST(SentencePieceModelTest, FileCutOffInsideAPieceIsNoModel) {
  const std::string first = bytes_field(1, bytes_field(1, "first"));
  const std::string both = first + bytes_field(1, bytes_field(1, "second"));
  for (std::size_t length = 0; length <= both.size(); ++length) {
    EXPECT_EQ(parse_sentencepiece_model(both.substr(0, length)).has_value(),
              length == first.size() || length == both.size())
        << length;
  }
}

TEST(SentencePieceModelTest, BytePiecesAreTheirBytes) {
  EXPECT_EQ(byte_of_piece("<0x00>"), 0);
  EXPECT_EQ(byte_of_piece("<0xA9>"), 0xA9);
  EXPECT_EQ(byte_of_piece("<0xFF>"), 255);
  for (const char* other : {"", "<0x>", "<0x1>", "<0x1G>", "<0x100>", "(0x10>", "<0x10)", "<0x-1>"}) {
    EXPECT_EQ(byte_of_piece(other), std::nullopt) << other;
  }
}

}  // namespace
}  // namespace routing::sentencepiece_model_test
