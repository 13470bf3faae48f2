// The fuzzer's targets without the fuzzer: their seeds, what it found worth keeping (corpus/), and some thousand
// changes of these at random, always the same ones. scripts/fuzz runs the real one.
//
// ROUTING_FUZZ_RUNS and ROUTING_FUZZ_SEED choose more and others.
#include "fuzz/targets.h"
#include "routing/core/base64.h"
#include "routing/core/random.h"
#include "test_paths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace routing::replay_test {
namespace {

using fuzz::FuzzTarget;

const std::filesystem::path kCorpus = std::filesystem::path(ROUTING_SOURCE_DIR) / "tests/fuzz/corpus";
constexpr std::size_t kLongest = 8192;

const std::vector<FuzzTarget>& all_targets() {
  using namespace fuzz;
  static const std::vector<FuzzTarget> targets{cifar10_target(),
                                               data_json_target(),
                                               event_file_target(),
                                               generate_options_target(),
                                               http_request_target(),
                                               http_words_target(),
                                               metrics_target(),
                                               npz_target(),
                                               pickle_target(),
                                               png_target(),
                                               rank_words_target(),
                                               request_fields_target(),
                                               run_folder_target(),
                                               safetensors_file_target(),
                                               safetensors_header_target(),
                                               sentencepiece_model_target(),
                                               settings_target(),
                                               shard_target(),
                                               snappy_target(),
                                               sorted_table_target(),
                                               subwords_target(),
                                               tensor_bundle_target(),
                                               text_stream_target(),
                                               text_target(),
                                               toml_target(),
                                               torch_archive_target(),
                                               trainer_json_target(),
                                               words_target()};
  return targets;
}

// A line in base64 for each input.
std::vector<std::string> corpus_of(const FuzzTarget& target) {
  std::vector<std::string> inputs;
  std::ifstream file(kCorpus / (std::string(target.name) + ".txt"));
  for (std::string line; std::getline(file, line);) {
    const std::optional<std::string> input = from_base64(line);
    EXPECT_TRUE(input) << target.name << ": line " << inputs.size() + 1 << " is no base64";
    inputs.push_back(input.value_or(""));
  }
  return inputs;
}

std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// Changes an input as the fuzzer would: bytes, pieces, numbers at their edges, parts of another input.
class Changes {
 public:
  explicit Changes(RandomStream random) : random_(std::move(random)) {}

  std::size_t below(std::size_t bound) {
    return random_.below(static_cast<std::uint32_t>(std::max<std::size_t>(1, bound)));
  }

  void change(std::string& input, const std::string& other) {
    const std::size_t place = below(input.size() + 1);
    const std::size_t length = std::min(input.size() - place, below(16));
    switch (below(7)) {
      case 0:
        if (place < input.size()) input[place] = static_cast<char>(below(256));
        break;
      case 1:
        if (place < input.size()) input[place] = static_cast<char>(input[place] ^ (1 << below(8)));
        break;
      case 2:
        input.insert(place, 1 + below(3), static_cast<char>(below(256)));
        break;
      case 3:
        input.erase(place, length);
        break;
      case 4:
        input.insert(place, input.substr(place, length));
        break;
      case 5: {
        const std::size_t from = below(other.size() + 1);
        input.replace(place, length, other.substr(from, below(32)));
        break;
      }
      default: {
        static const std::vector<std::string> edges{"-1",
                                                    "0",
                                                    "18446744073709551615",
                                                    "9223372036854775807",
                                                    "1e999",
                                                    "null",
                                                    std::string(8, '\xff'),
                                                    std::string(7, '\xff') + '\x7f',
                                                    std::string(4, '\0')};
        input.replace(place, length, edges[below(edges.size())]);
      }
    }
    if (input.size() > kLongest) input.resize(kLongest);
  }

 private:
  RandomStream random_;
};

std::string shown(const std::string& input) {
  return "input in base64: " + to_base64(input);
}

class FuzzTargets : public testing::TestWithParam<FuzzTarget> {
 protected:
  void run(const std::string& input) {
    try {
      GetParam().run(fuzz::bytes_of(input));
    } catch (const std::exception& finding) {
      FAIL() << finding.what() << "\n" << shown(input);
    }
  }
};

TEST_P(FuzzTargets, HoldForSeedsCorpusAndChangesOfThem) {
  fuzz::every_input_counts = true;
  std::vector<std::string> inputs = GetParam().seeds();
  ASSERT_FALSE(inputs.empty());
  for (std::string& input : corpus_of(GetParam())) inputs.push_back(std::move(input));
  inputs.emplace_back();
  for (const std::string& input : inputs) ASSERT_NO_FATAL_FAILURE(run(input));
  const std::uint64_t runs = number_from_environment("ROUTING_FUZZ_RUNS", 1000);
  const std::uint64_t seed = number_from_environment("ROUTING_FUZZ_SEED", 1);
  for (std::uint64_t number = 0; number < runs; ++number) {
    Changes changes(RandomStream(seed, GetParam().name, {number}));
    std::string input = inputs[changes.below(inputs.size())];
    for (std::size_t count = 1 + changes.below(4); count > 0; --count) {
      changes.change(input, inputs[changes.below(inputs.size())]);
    }
    ASSERT_NO_FATAL_FAILURE(run(input)) << "run " << number;
  }
}

INSTANTIATE_TEST_SUITE_P(All, FuzzTargets, testing::ValuesIn(all_targets()),
                         [](const auto& target) { return std::string(target.param.name); });

// What nobody replays is no corpus.
TEST(FuzzCorpus, BelongsToTargets) {
  for (const auto& file : std::filesystem::directory_iterator(kCorpus)) {
    const std::string name = file.path().stem().string();
    const bool known = std::any_of(all_targets().begin(), all_targets().end(),
                                   [&](const FuzzTarget& target) { return name == target.name; });
    EXPECT_TRUE(known) << file.path() << " has no target";
  }
}

}  // namespace
}  // namespace routing::replay_test
