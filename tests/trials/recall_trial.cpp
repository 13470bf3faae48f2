// Can routed heads recall? Trains a two-layer model on key-value recall and prints the share of answers right.
//
//   recall_trial [--steps N] [--seeds a,b,c] [--heads threshold,nearest,balanced,full,local] [--threads N]
//                [--rate R]
//
// A sequence states eight pairs (key, value) amid filler, then, behind more filler, asks for each key once more; the
// model must give the value. Answers lie 85 to 157 tokens behind their question and windows hold 20 tokens, so local
// heads alone cannot reach them. Not a ctest entry: it takes minutes. `make recall` runs it; docs/routing.md has
// results.
#include "routing/attention/multi_head.h"
#include "routing/config/routing_settings.h"
#include "routing/core/parallel.h"
#include "routing/core/random.h"
#include "routing/ops/random_fill.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/nn/module.h>
#include <torch/optim/adam.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace routing;

constexpr std::int64_t kPairs = 8;
constexpr std::int64_t kKeys = 8;
constexpr std::int64_t kValues = 8;
constexpr std::int64_t kFillers = 2;
constexpr std::int64_t kVocabulary = kKeys + kValues + kFillers;
constexpr std::int64_t kTokens = 160;
constexpr std::int64_t kStatements = 60;  // the pairs stand somewhere in the first 60 tokens
constexpr std::int64_t kQuestions = kTokens - 2 * kPairs;
constexpr std::int64_t kBatch = 32;
constexpr std::int64_t kWidth = 64;
constexpr std::int64_t kWindow = 20;
constexpr std::int64_t kHeads = 2;  // local heads of a layer, and as many others
constexpr std::int64_t kHeadDim = 32;
double learning_rate = 2e-3;
constexpr std::int64_t kClusters = kTokens / kWindow;

struct Batch {
  at::Tensor tokens;   // int64 [batch, tokens]
  at::Tensor answers;  // int64 [batch, pairs]: the value to give at the question's position
};

Batch make_batch(std::uint64_t seed, std::uint64_t number) {
  Batch batch{at::empty({kBatch, kTokens}, at::kLong), at::empty({kBatch, kPairs}, at::kLong)};
  for (std::int64_t b = 0; b < kBatch; ++b) {
    RandomStream stream(seed, "recall", {number, static_cast<std::uint64_t>(b)});
    auto* tokens = batch.tokens.data_ptr<std::int64_t>() + b * kTokens;
    for (std::int64_t t = 0; t < kTokens; ++t) tokens[t] = kKeys + kValues + stream.below(kFillers);
    const auto keys = sorted_sample(stream, kKeys, kPairs);
    const auto places = sorted_sample(stream, kStatements / 2, kPairs);
    std::vector<std::int64_t> order(kPairs);
    std::vector<std::int64_t> values(kPairs);
    for (std::int64_t p = 0; p < kPairs; ++p) {
      order[static_cast<std::size_t>(p)] = p;
      values[static_cast<std::size_t>(p)] = kKeys + stream.below(kValues);
    }
    for (std::size_t p = kPairs - 1; p > 0; --p)
      std::swap(order[p], order[stream.below(static_cast<std::uint32_t>(p) + 1)]);
    for (std::size_t p = 0; p < kPairs; ++p) {
      const std::int64_t place = 2 * places[p];
      // The keys come sorted; stating them in a random order keeps their place from telling anything.
      tokens[place] = keys[static_cast<std::size_t>(order[p])];
      tokens[place + 1] = values[static_cast<std::size_t>(order[p])];
    }
    for (std::size_t p = kPairs - 1; p > 0; --p)
      std::swap(order[p], order[stream.below(static_cast<std::uint32_t>(p) + 1)]);
    for (std::size_t p = 0; p < kPairs; ++p) {
      const std::int64_t question = kQuestions + 2 * static_cast<std::int64_t>(p);
      tokens[question] = keys[static_cast<std::size_t>(order[p])];
      tokens[question + 1] = values[static_cast<std::size_t>(order[p])];
      batch.answers[b][static_cast<std::int64_t>(p)] = values[static_cast<std::size_t>(order[p])];
    }
  }
  return batch;
}

HeadGroupConfig long_range_heads(const std::string& kind) {
  if (kind == "full") return {.pattern = FullPattern{}, .heads = kHeads};
  if (kind == "local") return {.pattern = LocalPattern{.window = kWindow}, .heads = kHeads};
  RoutingSettings settings =
      routing_preset(RoutingPreset::ours, {.heads = kHeads, .clusters = kClusters, .window = kWindow});
  set_routing_key(settings, "routing.selection", kind);
  return settings.group;
}

class RecallModel : public torch::nn::Module {
 public:
  RecallModel(const std::string& kind, std::uint64_t seed) {
    const at::TensorOptions floats(at::kFloat);
    const auto weight = [&](const std::string& name, std::int64_t rows, std::int64_t columns, double deviation) {
      at::Tensor tensor = at::empty({rows, columns}, floats);
      fill_normal(tensor, 0.0, deviation, RandomStream(seed, name));
      return register_parameter(name, tensor);
    };
    embedding_ = weight("embedding", kVocabulary, kWidth, 1.0);
    output_ = weight("output", kVocabulary, kWidth, 0.02);
    for (std::int64_t layer = 0; layer < 2; ++layer) {
      const AttentionConfig config{.width = kWidth,
                                   .head_dim = kHeadDim,
                                   .head_groups = {{.pattern = LocalPattern{.window = kWindow},
                                                    .heads = kHeads,
                                                    .relative = RelativePosition::true_offset,
                                                    .max_relative = kWindow},
                                                   long_range_heads(kind)}};
      const std::string name = std::to_string(layer);
      attention.push_back(register_module(
          "attention" + name, MultiHeadAttention(config, LayerPlace{.seed = seed, .layer = layer}, floats)));
      // From the authors' cautious variance of 0.2 to the usual 1.
      for (at::Tensor& parameter : attention.back()->parameters()) parameter.data().mul_(std::sqrt(5.0));
      wide_.push_back(weight("wide" + name, 4 * kWidth, kWidth, 1.0 / std::sqrt(kWidth)));
      narrow_.push_back(weight("narrow" + name, kWidth, 4 * kWidth, 0.5 / std::sqrt(4.0 * kWidth)));
    }
  }

  struct Result {
    at::Tensor logits;          // [batch, pairs, vocabulary], at the questions
    at::Tensor auxiliary_loss;  // undefined without routed heads
  };
  Result run(const Batch& batch, std::uint64_t step) {
    const auto norm = [](const at::Tensor& x) { return at::layer_norm(x, {kWidth}); };
    at::Tensor x = at::embedding(embedding_, batch.tokens);
    Result result;
    for (std::size_t layer = 0; layer < attention.size(); ++layer) {
      AttentionState state{.step = step};
      x = x + attention[layer]->forward(norm(x), state);
      x = x + at::linear(at::relu(at::linear(norm(x), wide_[layer])), narrow_[layer]);
      if (state.auxiliary_loss.defined()) {
        result.auxiliary_loss =
            result.auxiliary_loss.defined() ? result.auxiliary_loss + state.auxiliary_loss : state.auxiliary_loss;
      }
    }
    const at::Tensor questions = at::arange(kQuestions, kTokens, 2, at::kLong);
    result.logits = at::linear(norm(x.index_select(1, questions)), output_);
    return result;
  }

  std::vector<MultiHeadAttention> attention;

 private:
  at::Tensor embedding_, output_;
  std::vector<at::Tensor> wide_, narrow_;
};

double accuracy(RecallModel& model, std::uint64_t seed, int batches) {
  const at::NoGradGuard no_gradient;
  model.eval();
  double right = 0.0;
  for (int number = 0; number < batches; ++number) {
    const Batch batch = make_batch(seed + 1000000, static_cast<std::uint64_t>(number));
    right += (model.run(batch, 0).logits.argmax(-1) == batch.answers).to(at::kDouble).mean().item<double>();
  }
  model.train();
  return right / batches;
}

void train(const std::string& kind, std::uint64_t seed, std::int64_t steps) {
  RecallModel model(kind, seed);
  torch::optim::Adam adam(model.parameters(), torch::optim::AdamOptions(learning_rate).betas({0.9, 0.98}));
  double loss_sum = 0.0;
  std::int64_t loss_steps = 0;
  for (std::int64_t step = 1; step <= steps; ++step) {
    // A hundred steps of warm-up; down to zero over the last third.
    const double warm_up = static_cast<double>(step) / 100.0;
    const double left = 3.0 * static_cast<double>(steps - step) / static_cast<double>(steps);
    const double rate = learning_rate * std::min({1.0, warm_up, left});
    static_cast<torch::optim::AdamOptions&>(adam.param_groups()[0].options()).lr(rate);
    const Batch batch = make_batch(seed, static_cast<std::uint64_t>(step));
    const RecallModel::Result result = model.run(batch, static_cast<std::uint64_t>(step));
    at::Tensor loss = at::cross_entropy_loss(result.logits.flatten(0, 1), batch.answers.flatten());
    loss_sum += loss.item<double>();
    ++loss_steps;
    if (result.auxiliary_loss.defined()) loss = loss + result.auxiliary_loss;
    adam.zero_grad();
    loss.backward();
    adam.step();
    std::vector<RoutingStatistics> statistics;
    for (MultiHeadAttention& layer : model.attention) {
      for (RoutingStatistics& group : layer->update_centroids()) statistics.push_back(std::move(group));
    }
    if (step % 100 != 0 && step != steps) continue;
    std::printf("%-9s seed %llu step %5lld loss %.3f right %.3f", kind.c_str(), static_cast<unsigned long long>(seed),
                static_cast<long long>(step), loss_sum / static_cast<double>(loss_steps), accuracy(model, seed, 8));
    for (const RoutingStatistics& group : statistics) {
      std::printf("  [memberships %.2f occupancy entropy %.2f]", group.mean_memberships, group.occupancy_entropy[0]);
    }
    std::printf("\n");
    std::fflush(stdout);
    loss_sum = 0.0;
    loss_steps = 0;
  }
  std::printf("result    %-9s seed %llu steps %lld right %.3f%s\n", kind.c_str(), static_cast<unsigned long long>(seed),
              static_cast<long long>(steps), accuracy(model, seed, 32),
              kind == "balanced" ? " (selection reads the future)" : "");
  std::fflush(stdout);
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream stream(list);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t steps = 500;
  std::string seeds = "1,2,3";
  std::string heads = "threshold,nearest,balanced,full,local";
  for (int index = 1; index < argc; index += 2) {
    const std::vector<std::string> known{"--steps", "--seeds", "--heads", "--threads", "--rate"};
    if (index + 1 == argc || std::find(known.begin(), known.end(), argv[index]) == known.end()) {
      std::fprintf(stderr, "recall_trial: error: %s is not known or has no value; see the head of the source\n",
                   argv[index]);
      return 2;
    }
    if (std::strcmp(argv[index], "--steps") == 0) steps = std::atoll(argv[index + 1]);
    if (std::strcmp(argv[index], "--seeds") == 0) seeds = argv[index + 1];
    if (std::strcmp(argv[index], "--heads") == 0) heads = argv[index + 1];
    if (std::strcmp(argv[index], "--rate") == 0) learning_rate = std::atof(argv[index + 1]);
    if (std::strcmp(argv[index], "--threads") == 0) set_num_threads(std::atoi(argv[index + 1]));
  }
  at::set_num_threads(num_threads());
  for (const std::string& kind : split(heads)) {
    for (const std::string& seed : split(seeds)) train(kind, std::strtoull(seed.c_str(), nullptr, 10), steps);
  }
  return 0;
}
