// routing generate with models of words, subwords, images and pairs of sequences.
#include "cli/generate_fixture.h"
#include "routing/data/images/png_image.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace routing::generate_kinds_test {
namespace {

// Some images of CIFAR-10's format, each of one colour.
std::string cifar(int records) {
  std::string file;
  for (int i = 0; i < records; ++i) file += std::string(1, '\3') + std::string(3072, static_cast<char>(i));
  return file;
}

std::string ids_text(const nlohmann::json& ids) {
  std::string text;
  for (const int id : ids) {
    if (id != 1) text += (text.empty() ? "" : " ") + std::to_string(id);
  }
  return text;
}

TEST_F(CliGenerate, WordsComeWithSpacesAndUnknownOnesAreNamed) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += " line " + std::to_string(i * i % 17) + " of a text \n";
  for (const char* part : {"train", "valid", "test"}) write("wiki/wiki." + std::string(part) + ".tokens", text);
  train("tiny-wikitext103", "--data wiki --steps 60 --set train.learning_rate=1e-2");
  fs::remove_all(folder_ / "wiki");
  fs::remove_all(folder_ / "cache");
  const Outcome outcome = run("generate run --prompt 'line 4 of quite another text' -n 12");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "read as <unk>: quite, another\n")) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, " \n line ")) << "<eos> is a line end and ends nothing: " << outcome.out;
  write("other", "<eos>\n<unk>\nquite\n");
  expect_mistake(2, "run --vocabulary other", {"other", "learned those of", "--vocabulary FILE"});
  fs::rename(folder_ / "run/vocabulary.txt", folder_ / "kept");
  expect_mistake(1, "run", {"vocabulary.txt", "--vocabulary FILE"});
  EXPECT_EQ(generated("--vocabulary kept --prompt 'line 4 of quite another text' -n 12"), outcome.out);
}

TEST_F(CliGenerate, SubwordsEndWithTheirDocument) {
  for (int i = 0; i < 300; ++i) {
    write("books/" + std::to_string(1000 + i) + ".txt", "line " + std::to_string(i % 10) + "\n");
  }
  train("tiny-pg19",
        "--data books --set data.format=text --set data.vocabulary_size=280 --set attention.content_layers=all "
        "--steps 60 --set train.learning_rate=1e-2");
  const auto ended = objects("--prompt 'line 4' -n 100").front();
  EXPECT_EQ(ended["stop_reason"], "end") << ended;
  EXPECT_EQ(ended["tokens"].back(), 0);
  EXPECT_EQ(ended["text"], "\n");
  const auto whole = objects("--prompt 'line 4' -n 100 --ignore-end").front();
  EXPECT_EQ(whole["new_tokens"], 100);
  EXPECT_TRUE(contains(whole["text"], "line ")) << whole;
  expect_mistake(1, "run --prompt \"$(printf '\\377')\"", {"UTF-8"});
}

TEST_F(CliGenerate, ImagesAreWrittenAndTheirLowerHalvesCompleted) {
  write("c/data_batch_1.bin", cifar(60));
  train("tiny-cifar10",
        "--set model.image_height=8 --set model.image_width=8 --set data.image_size=8 --data c --steps 3");
  const Outcome whole = run("generate run --num-samples 3 --batch-size 2");
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_EQ(whole.out,
            "run/samples-1/sample-000.png\nrun/samples-1/sample-001.png\nrun/samples-1/sample-002.png\n"
            "run/samples-1/sheet.png\n");
  EXPECT_TRUE(contains(whole.err, "576 tokens in ")) << whole.err;
  EXPECT_TRUE(contains(whole.err, "cached, causal, partial data")) << whole.err;
  const fs::path samples = folder_ / "run/samples-1";
  const Image first = read_png(samples / "sample-000.png");
  EXPECT_EQ(to_string(first.shape), "8 x 8");
  EXPECT_NE(first, read_png(samples / "sample-001.png"));
  EXPECT_EQ(to_string(read_png_shape(samples / "sheet.png")), "88 x 88") << "2 x 2 of 32, with margins of 8";

  const auto completed = objects("--image run/samples-1/sample-000.png --num-samples 2 --out half");
  ASSERT_EQ(completed.size(), 2U);
  EXPECT_EQ(completed[1]["file"], "half/sample-001.png");
  EXPECT_EQ(completed[1]["prompt_tokens"], 96);
  EXPECT_EQ(completed[1]["new_tokens"], 96);
  EXPECT_EQ(completed[1]["data_label"], "partial data");
  const Image half = read_png(folder_ / "half/sample-001.png");
  EXPECT_TRUE(std::equal(half.values.begin(), half.values.begin() + 96, first.values.begin()));
  EXPECT_FALSE(std::equal(half.values.begin() + 96, half.values.end(), first.values.begin() + 96));
  EXPECT_EQ(to_string(read_png_shape(folder_ / "half/sheet.png")), "172 x 534")
      << "4 images of 128 in one group, under a strip of 28";

  EXPECT_EQ(times(generated("--complete-split test --num-samples 2 --out half --force"), "\n"), 3U);
  EXPECT_EQ(to_string(read_png_shape(folder_ / "half/sheet.png")), "308 x 404") << "3 images per group, 2 groups";

  expect_mistake(2, "run", {"run/samples-1", "not empty", "--force"});
  expect_mistake(1, "run --out new --image run/samples-1/sheet.png", {"88 x 88", "8 x 8"});
  expect_mistake(2, "run --out new --prompt text", {"--prompt is for text", "model of images"});
  expect_mistake(2, "run --out new --complete-split test --num-samples 1000", {"1000", "test", "images"});
}

TEST_F(CliGenerate, EncoderDecodersReadASourceGreedilyOrWithBeams) {
  train("tiny-copy",
        "--set model.vocab_size=12 --set train.source_length=6 --set train.sequence_length=7 "
        "--set train.shortest_length=0 --set attention.cross_heads=2 --set local.window=4 "
        "--set routing.window=4 --set routing.clusters=2 --steps 20");
  const auto greedy = objects("--prompt '3 7 5 4' --temperature 0").front();
  EXPECT_EQ(greedy["prompt_tokens"], 4);
  EXPECT_LE(greedy["new_tokens"], 7);
  EXPECT_EQ(greedy["text"], ids_text(greedy["tokens"]));
  EXPECT_EQ(generated("--prompt-ids 3,7,5,4 --beams 1"), greedy["text"].get<std::string>() + "\n");
  const auto beams = objects("--prompt-ids 3,7,5,4 --beams 4 --num-samples 4 --length-penalty 0");
  ASSERT_EQ(beams.size(), 4U);
  EXPECT_EQ(beams[0]["beams"], 4);
  for (std::size_t i = 1; i < beams.size(); ++i) {
    if (beams[i - 1]["stop_reason"] == beams[i]["stop_reason"]) {
      EXPECT_GE(beams[i - 1]["log_probability"], beams[i]["log_probability"]);
    }
    EXPECT_NE(beams[i - 1]["tokens"], beams[i]["tokens"]);
  }
  expect_mistake(2, "run", {"encoder-decoder", "needs a source"});
  expect_mistake(1, "run --prompt-ids 3,12", {"12", "0 to 11"});
  expect_mistake(2, "run --prompt-ids 3 --stop x", {"--stop is for text"});
}

}  // namespace
}  // namespace routing::generate_kinds_test
