// What a run shows while it trains: the shares of clusters, and samples of the model.
#include "routing/training/run_samples.h"

#include "routing/core/error.h"
#include "routing/data/images/png_image.h"
#include "routing/data/tokenizers/byte_tokenizer.h"
#include "routing/generation/generate.h"
#include "routing/generation/image_tokens.h"
#include "support/message_of.h"
#include "training/run_fixture.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace routing::run_samples_test {
namespace {

using Json = nlohmann::ordered_json;

class Shown : public Training {
 protected:
  void SetUp() override {
    Training::SetUp();
    config_.train.clusters_every = 5;
    config_.train.sample_every = 4;
    config_.train.sample_tokens = 20;
  }

  // clusters.jsonl and the samples of a run, whole.
  std::map<std::string, std::string> shown(const std::string& run) const {
    std::map<std::string, std::string> files;
    const RunDirectory place(folder_ / run);
    if (fs::exists(place.clusters_file())) files["clusters.jsonl"] = read_file(place.clusters_file());
    if (!fs::exists(place.samples_folder())) return files;
    for (const auto& entry : fs::directory_iterator(place.samples_folder())) {
      files[entry.path().filename().string()] = read_file(entry.path());
    }
    return files;
  }

  // What `generate` draws from a checkpoint, with the step's number as the seed.
  Sample generated(const std::string& run, std::int64_t step, std::int64_t tokens) const {
    const auto model = load_sequence_model(RunDirectory(folder_ / run).checkpoint(step).model());
    const auto decoder = make_decoder(model);
    const std::vector<std::vector<std::int32_t>> nothing(1);
    return generate(*decoder, nothing,
                    {.sampling = {.seed = static_cast<std::uint64_t>(step)}, .max_new_tokens = tokens})
        .front();
  }
};

TEST_F(Shown, ClustersAndSamplesAreWrittenWhenTheyAreDue) {
  train("run", false);
  const std::vector<Json> lines = read_metrics(RunDirectory(folder_ / "run").clusters_file());
  ASSERT_EQ(lines.size(), 3U);
  std::vector<std::int64_t> steps;
  for (const Json& line : lines) {
    steps.push_back(line.at("step"));
    // One layer with routed heads, behind two local ones.
    std::vector<std::int64_t> heads;
    for (const Json& head : line.at("heads")) {
      EXPECT_TRUE(head.at("attention") == "layer 0" || head.at("attention") == "layer 1") << head;
      heads.push_back(head.at("head"));
      ASSERT_EQ(head.at("shares").size(), 4U);
      double sum = 0.0;
      for (const double share : head.at("shares")) sum += share;
      EXPECT_NEAR(sum, 1.0, 4e-5);
      EXPECT_GE(head.at("dead").get<std::int64_t>(), 0);
    }
    const auto routed = config_.attention.content_heads;
    ASSERT_EQ(heads.size() % static_cast<std::size_t>(routed), 0U);
    for (std::size_t i = 0; i < heads.size(); ++i) EXPECT_EQ(heads[i], 2 + static_cast<std::int64_t>(i % 2));
  }
  EXPECT_EQ(steps, (std::vector<std::int64_t>{5, 10, 12}));
  std::vector<std::string> names;
  for (const auto& [name, bytes] : shown("run")) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"clusters.jsonl", "step-00000004.txt", "step-00000008.txt",
                                             "step-00000012.txt"}));
}

// The extremes are in metrics.jsonl as well.
TEST_F(Shown, TheSharesAreThoseOfTheLogOfTheSameStep) {
  config_.train.log_every = 1;
  config_.train.clusters_every = 1;
  train("run", false);
  std::map<std::int64_t, Json> logged;
  for (const Json& line : metrics("run")) {
    if (line.contains("routing_occupancy_max")) logged[line.at("step")] = line;
  }
  const std::vector<Json> lines = read_metrics(RunDirectory(folder_ / "run").clusters_file());
  ASSERT_EQ(lines.size(), 12U);
  for (const Json& line : lines) {
    double least = 1.0;
    double most = 0.0;
    double dead = 0.0;
    for (const Json& head : line.at("heads")) {
      for (const double share : head.at("shares")) least = std::min(least, share), most = std::max(most, share);
      dead += head.at("dead").get<double>();
    }
    const Json& same = logged.at(line.at("step"));
    EXPECT_NEAR(same.at("routing_occupancy_min").get<double>(), least, 1e-5);
    EXPECT_NEAR(same.at("routing_occupancy_max").get<double>(), most, 1e-5);
    EXPECT_EQ(same.at("routing_dead_centroids").get<double>(), dead);
  }
}

TEST_F(Shown, ZeroMeansNeverAndUnroutedModelsHaveNoClusters) {
  config_.train.clusters_every = 0;
  config_.train.sample_every = 0;
  train("neither", false);
  EXPECT_TRUE(shown("neither").empty());
  config_.train.clusters_every = 1;
  config_.attention.content = PatternKind::full;
  train("unrouted", false);
  EXPECT_TRUE(shown("unrouted").empty());
}

TEST_F(Shown, ASampleIsWhatTheCheckpointOfItsStepGenerates) {
  config_.train.checkpoint_every = 4;
  config_.train.keep_checkpoints = 100;
  train("run", false);
  for (const std::int64_t step : {4, 8, 12}) {
    const Sample expected = generated("run", step, 20);
    EXPECT_EQ(read_file(RunDirectory(folder_ / "run").sample_file(step, ".txt")),
              ByteTokenizer().decode(expected.tokens));
  }
}

// Dropout, all selections, a vocabulary in bands, recomputed layers, bfloat16, memory: nothing that training keeps may
// notice that it was asked for a sample.
TEST_F(Shown, NoBitOfTrainingDependsOnWhatIsShown) {
  std::vector<ContentCase> cases = content_cases();
  std::erase_if(cases, [](const ContentCase& one) { return one.name == "local2d"; });
  cases.push_back({"bands", in_bands(small_experiment())});
  cases.push_back({"recomputed", small_experiment()});
  cases.back().config.model.checkpoint_activations = true;
  cases.push_back({"bf16", small_experiment()});
  cases.back().config.train.precision = Precision::bf16;
  cases.push_back({"accumulated", small_experiment()});
  cases.back().config.train.accumulation = 2;
  cases.push_back({"memory", small_experiment("local")});
  cases.back().config.memory.length = 16;
  cases.back().config.train.order = DataOrder::contiguous;
  for (const ContentCase& one : cases) {
    const DataConfig data = config_.data;
    config_ = one.config;
    config_.data = data;
    config_.model.residual_dropout = 0.1;
    config_.train.steps = 6;
    config_.train.log_every = 1;
    config_.train.eval_every = 2;
    config_.train.eval_tokens = 64;
    config_.train.clusters_every = config_.train.sample_every = 0;
    SCOPED_TRACE(one.name);
    train(one.name, false);
    config_.train.clusters_every = config_.train.sample_every = 1;
    config_.train.sample_tokens = 12;
    train(one.name + "-shown", false);
    expect_same_end(one.name, one.name + "-shown");
    EXPECT_GE(shown(one.name + "-shown").size(), 6U);
  }
}

TEST_F(Shown, StoppedAndResumedItEndsWithTheSameFiles) {
  config_.train.sample_every = 2;
  train("whole", false);
  const auto whole = shown("whole");
  for (const std::int64_t stop : {1, 4, 7, 10}) {
    const std::string run = "stopped-" + std::to_string(stop);
    train(run, false, stop);
    train(run, true);
    EXPECT_EQ(shown(run), whole) << stop;
    expect_same_end("whole", run);
  }
}

// What a kill leaves behind: lines and samples after the checkpoint, half a line, half a file.
TEST_F(Shown, LeftoversOfAKillAreCutBack) {
  config_.train.sample_every = 2;
  train("whole", false);
  train("killed", false, 7);
  const RunDirectory killed(folder_ / "killed");
  std::ofstream(killed.clusters_file(), std::ios::app) << R"({"step":9,"heads":[]})"
                                                       << "\n"
                                                       << R"({"step":10,)";
  std::ofstream(killed.sample_file(8, ".txt")) << "of a life that was lost";
  std::ofstream(killed.sample_file(9, ".png")) << "likewise";
  std::ofstream(killed.samples_folder() / "step-00000010.txt.part-1-1") << "half";
  std::ofstream(killed.samples_folder() / "mine.txt") << "of the user";
  train("killed", true);
  auto files = shown("killed");
  EXPECT_EQ(files["mine.txt"], "of the user");
  files.erase("mine.txt");
  EXPECT_EQ(files, shown("whole"));
}

TEST_F(Shown, HowOftenMayChangeOnTheWay) {
  train("run", false, 5);
  config_.train.clusters_every = 2;
  config_.train.sample_every = 0;
  config_.train.sample_tokens = 7;
  train("run", true);
  const auto files = shown("run");
  EXPECT_EQ(files.size(), 2U) << "clusters.jsonl and the sample of step 4";
  std::vector<std::int64_t> steps;
  for (const Json& line : read_metrics(RunDirectory(folder_ / "run").clusters_file())) steps.push_back(line.at("step"));
  EXPECT_EQ(steps, (std::vector<std::int64_t>{5, 6, 8, 10, 12}));
}

// 1 + 2 + … + 361 tokens are run again for 361.
TEST_F(Shown, SamplesThatReRunTheirPrefixAreShort) {
  EXPECT_EQ(longest_reread_sample(), 361);
  config_ = content_cases()[5].config;
  ASSERT_EQ(config_.name, "small-routing");
  ASSERT_EQ(config_.routing.routing().selection, RoutingSelection::balanced);
  config_.data.path = (folder_ / "text").string();
  config_.train.steps = 1;
  config_.train.sample_every = 1;
  config_.train.sample_tokens = 400;
  train("run", false);
  EXPECT_EQ(read_file(RunDirectory(folder_ / "run").sample_file(1, ".txt")).size(), 361U);
  config_.train.sample_tokens = 300;
  train("shorter", false);
  EXPECT_EQ(read_file(RunDirectory(folder_ / "shorter").sample_file(1, ".txt")).size(), 300U);
}

TEST_F(Shown, ModelsOfImagesDrawImages) {
  fs::create_directories(folder_ / "images");
  RandomStream stream(1, "images of the test");
  const ImageShape shape{.height = 8, .width = 60};
  for (int i = 0; i < 8; ++i) {
    Image image{.shape = shape, .values = std::vector<std::uint8_t>(static_cast<std::size_t>(shape.values()))};
    for (std::uint8_t& value : image.values) value = static_cast<std::uint8_t>(stream.below(256));
    write_png(folder_ / "images" / (std::to_string(i) + ".png"), image);
  }
  config_.data.path = (folder_ / "images").string();
  config_.data.split = "80%/10%/10%";
  config_.data.cache = (folder_ / "cache").string();
  config_.model.image_height = shape.height;
  config_.model.image_width = shape.width;
  config_.train.steps = 2;
  config_.train.sample_every = 1;
  config_.train.checkpoint_every = 1;
  train("run", false);
  const fs::path drawn = RunDirectory(folder_ / "run").sample_file(2, ".png");
  EXPECT_EQ(read_png(drawn), image_from_tokens(generated("run", 2, shape.values()).tokens, shape));
  // 361 values are two rows of 180; the rest is grey.
  config_.routing.routing().selection = RoutingSelection::balanced;
  keys_as_they_stand(config_.routing.group);
  train("balanced", false);
  const Image part = read_png(RunDirectory(folder_ / "balanced").sample_file(2, ".png"));
  EXPECT_EQ(part, image_from_tokens(generated("balanced", 2, 360).tokens, shape));
  EXPECT_EQ(part.values.at(360), 128);
}

// Not even counts of an evaluation stay behind, and training goes on as such.
TEST_F(Shown, AModelIsLeftAsItWas) {
  for (const RoutingSelection selection : {RoutingSelection::threshold, RoutingSelection::balanced}) {
    config_.routing.routing().selection = selection;
    Learner learner(config_);
    const auto data = open_training_data(config_);
    const std::vector<TokenBatch> batches{data->batch(0)};
    learner.step(batches);
    write_sample(RunDirectory(folder_ / "run"), learner, *data, 1);
    EXPECT_TRUE(learner.model().is_training());
    for (const auto& group : learner.model().routed_groups()) {
      EXPECT_TRUE(group.centroids->evaluated().empty());
      EXPECT_TRUE(group.centroids->pending().empty());
    }
    EXPECT_EQ(length_of_samples(config_), 20);
    EXPECT_EQ(draw_sample(learner, {.step = 1, .tokens = 5}).size(), 5U);
  }
}

TEST_F(Shown, AFolderThatCannotBeMadeIsNamed) {
  RunDirectory(folder_ / "run").create(config_);
  std::ofstream(folder_ / "run/samples") << "a file";
  const std::string message = message_of<FileError>([&] { train("run", true); });
  EXPECT_NE(message.find("samples: cannot be made: "), std::string::npos) << message;
}

TEST(SampleNames, TellTheirStep) {
  EXPECT_EQ(RunDirectory("run").sample_file(7, ".png"), "run/samples/step-00000007.png");
  EXPECT_EQ(RunDirectory("run").sample_file(1234567890, ".txt"), "run/samples/step-1234567890.txt");
  EXPECT_EQ(RunDirectory::step_of_sample("step-00000007.png"), 7);
  EXPECT_EQ(RunDirectory::step_of_sample("step-1234567890.txt"), 1234567890);
  for (const char* other : {"step-7.png", "step-00000007.jpg", "step-00000007", "step-0000000x.txt", ".png",
                            "step-00000007.png.part-1-1", "../step-00000007.png.txt"}) {
    EXPECT_EQ(RunDirectory::step_of_sample(other), -1) << other;
  }
}

}  // namespace
}  // namespace routing::run_samples_test
