// routing convert, and what other commands make of a converted model.
#include "cli/generate_fixture.h"
#include "interchange/pickle/pickle_bytes.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstring>
#include <string>

namespace routing::convert_test {
namespace {

class CliConvert : public CliGenerate {
 protected:
  Outcome succeed(const std::string& arguments) const {
    Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << arguments << "\n" << outcome.err;
    return outcome;
  }
  // What is wrong with a file, not with the line.
  void expect_failure(const std::string& arguments, const std::vector<std::string>& parts) const {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit_code, 1) << arguments << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "") << arguments;
    for (const std::string& part : parts) EXPECT_TRUE(contains(outcome.err, part)) << part << " in " << outcome.err;
  }
  nlohmann::json figures_of(const std::string& arguments) const {
    nlohmann::json object = nlohmann::json::parse(succeed(arguments + " --json --quiet").out);
    for (const char* key : {"model", "data", "run"}) object.erase(key);
    return object;
  }

  // The state_dict of a RoutingTransformerLM of one layer with local heads alone, all weights zero.
  void write_state_dict(const std::string& name, const std::string& extra = "") const {
    constexpr int kDim = 8, kDimHead = 4, kHeads = 2, kLength = 16;
    std::vector<std::pair<std::string, std::string>> entries;
    std::vector<ZipEntry> files;
    const auto add = [&](const std::string& tensor, const std::vector<std::int64_t>& shape,
                         const std::vector<float>& numbers = {}) {
      std::int64_t count = 1;
      std::vector<std::int64_t> strides(shape.size(), 1);
      for (std::size_t axis = shape.size(); axis > 0; --axis) {
        strides[axis - 1] = count;
        count *= shape[axis - 1];
      }
      const std::string number = std::to_string(files.size());
      std::string bytes(static_cast<std::size_t>(4 * count), '\0');
      if (!numbers.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
      files.push_back({"lm/data/" + number, bytes});
      entries.emplace_back(tensor, tensor_of({.storage = storage_of("FloatStorage", number, count),
                                              .size = numbers_of(shape),
                                              .stride = numbers_of(strides)}));
    };
    std::vector<float> table;
    for (int position = 0; position < kLength; ++position) {
      for (const bool cosine : {false, true}) {
        for (const double rate : {1.0, 0.01}) {
          table.push_back(static_cast<float>(cosine ? std::cos(position * rate) : std::sin(position * rate)));
        }
      }
    }
    add("sinu_pos_emb.emb", {kLength, kDimHead}, table);
    add("token_emb.weight", {256, kDim});
    const std::string layer = "routing_transformer.layers.layers.0.";
    add(layer + "0.norm.weight", {kDim});
    add(layer + "0.norm.bias", {kDim});
    add(layer + "0.fn.local_attn.rel_pos.inv_freq", {kDimHead / 2}, {1.0F, 0.01F});
    add(layer + "0.fn.local_to_qkv.weight", {3 * kHeads * kDimHead, kDim});
    add(layer + "0.fn.local_to_qkv.bias", {3 * kHeads * kDimHead});
    add(layer + "0.fn.to_q.weight", {0, kDim});
    add(layer + "0.fn.to_v.weight", {0, kDim});
    add(layer + "0.fn.to_out.weight", {kDim, kHeads * kDimHead});
    add(layer + "1.norm.weight", {kDim});
    add(layer + "1.norm.bias", {kDim});
    add(layer + "1.fn.fn.w1.weight", {4 * kDim, kDim});
    add(layer + "1.fn.fn.w1.bias", {4 * kDim});
    add(layer + "1.fn.fn.w2.weight", {kDim, 4 * kDim});
    add(layer + "1.fn.fn.w2.bias", {kDim});
    add("norm.weight", {kDim});
    add("norm.bias", {kDim});
    add("out.weight", {256, kDim});
    add("out.bias", {256});
    if (!extra.empty()) add(extra, {1});
    files.push_back({"lm/data.pkl", pickle_of(dictionary_of(entries))});
    write_archive(folder_ / name, files);
  }
};

TEST_F(CliConvert, OursBecomesTheAuthorsCheckpointAndOursAgain) {
  const std::string settings =
      " --set model.layers=2 --set model.width=32 --set model.feedforward_width=48 --set attention.heads=4"
      " --set attention.content_heads=2 --set local.window=16 --set local.max_relative=33 --set routing.window=16"
      " --set routing.clusters=4 --set routing.max_relative=33 --set train.sequence_length=48 ";
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "line " + std::to_string(i * i % 89) + " of a text\n";
  write("text", text);
  succeed("train --quiet --preset enwik8-code" + settings +
          "--data text --steps 3 --out run --set train.eval_tokens=96 --set train.batch_size=1 --set data.cache=cache "
          "--set model.vocab_size=256 --set data.format=bytes");
  const Outcome written = succeed("convert run --to tensorflow --out theirs");
  EXPECT_TRUE(contains(written.out, "theirs.index")) << written.out;
  expect_refused("convert run --to tensorflow --out theirs", {"theirs.index: is there already", "--force"});
  const Outcome made = succeed("convert theirs --preset enwik8-code" + settings +
                               "--set model.vocab_size=256 --set data.format=bytes --out ours");
  for (const char* part : {"ours\n", "step 3", "selection reads the future", "global_step", "model.safetensors"}) {
    EXPECT_TRUE(contains(made.out, part)) << part << " in " << made.out;
  }
  EXPECT_EQ(figures_of("eval ours --data text --split test"), figures_of("eval run --checkpoint last --split test"));
  succeed("info ours");
  EXPECT_EQ(succeed("generate --quiet ours --prompt 'line 4' -n 9 --seed 5").exit_code, 0);
  expect_failure("convert theirs --preset enwik8-code --out other", {"does not fit the configuration", "missing"});
  expect_refused("convert theirs --out other", {"holds no configuration", "--preset pg19-code"});
  for (const char* source : {"run", "ours", "ours/model.safetensors"}) {
    expect_refused(std::string("convert ") + source + " --out other",
                   {"is a model of this program already", "--to tensorflow"});
  }
  EXPECT_FALSE(fs::exists(folder_ / "other"));
}

TEST_F(CliConvert, AStateDictBecomesAModel) {
  write_state_dict("lm.pt");
  const std::string line = "convert lm.pt --arg causal=true --arg window_size=8 --set data.tokens=bytes ";
  const nlohmann::json made = nlohmann::json::parse(succeed(line + "--out lm --json").out);
  EXPECT_EQ(made["validity"], "causal");
  EXPECT_EQ(made["skipped"].size(), 2U);
  write("text", std::string(4000, 'a'));
  // Weights of zero know nothing: 8 bits for each byte.
  EXPECT_NEAR(figures_of("eval lm --data text --split test")["bits_per_byte"].get<double>(), 8.0, 1e-6);
  EXPECT_EQ(succeed("generate --quiet lm --prompt a -n 5 --seed 1").exit_code, 0);
  succeed("info lm");
  expect_refused(line + "--out lm", {"lm: is there already", "--force"});
  succeed(line + "--out lm --force");
  write("arguments.json", R"({"causal": true, "window_size": 8, "n_local_attn_heads": [2], "emb_dim": null})");
  succeed("convert lm.pt --args arguments.json --out other");
}

TEST_F(CliConvert, MistakesAreExplained) {
  write_state_dict("lm.pt");
  expect_refused("convert lm.pt --out lm", {"give causal=true"});
  expect_refused("convert lm.pt --arg causal --out lm", {"--arg causal: is not NAME=VALUE"});
  expect_refused("convert lm.pt --arg causal=true --arg window_size=8 --arg heads=8 --out lm",
                 {"heads is given as 8, but the tensors say 2"});
  expect_refused("convert lm.pt --arg causal=true --arg window_size=8 --set model.width=9 --out lm",
                 {"--set model.width=9", "only name, data., train. and eval. are free"});
  expect_refused("convert lm.pt --preset pg19-code --out lm", {"--preset and --config are for checkpoints"});
  expect_failure("convert nothing --out lm", {"nothing.index is there"});
  expect_refused("convert lm.pt --to tensorflow --preset enwik8-code --out x", {"--preset is for models that come in"});
  expect_refused("convert lm.pt", {"--out"});
  write_state_dict("pkm.pt", "routing_transformer.layers.layers.0.1.fn.to_queries.weight");
  expect_failure("convert pkm.pt --arg causal=true --out lm", {"product-key memory (pkm_layers)"});
  write_archive(folder_ / "evil.pt",
                {{"a/data.pkl", pickle_of(function_of("os", "system") + tuple_of({string_of("touch pwned")}) + "R")}});
  expect_failure("convert evil.pt --arg causal=true --out lm", {"asks for 'os.system'", "nothing is run"});
  EXPECT_FALSE(fs::exists(folder_ / "pwned"));
  EXPECT_FALSE(fs::exists(folder_ / "lm"));
}

}  // namespace
}  // namespace routing::convert_test
