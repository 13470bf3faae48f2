// A model that is to be sampled from, and what all kinds of models share on the way.
#pragma once

#include "generate/generate_options.h"
#include "generate/generate_prompt.h"
#include "generate/generate_report.h"
#include "routing/distributed/group/rank_group.h"
#include "routing/generation/decoder.h"
#include "routing/generation/generate.h"
#include "routing/model/weights.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <memory>
#include <string>

namespace routing {

// Ctrl-C while there was nothing yet that could be kept.
struct Interrupted {};

struct GenerateJob {
  GenerateArguments arguments = {};
  std::filesystem::path path = {};  // of the model file
  std::shared_ptr<SequenceModel> model = nullptr;
  ModelNotes notes = {};
  bool quiet = false;
  RankGroup* ranks = nullptr;  // that read the prompt together

  const ExperimentConfig& config() const { return model->config(); }
  bool reads_source() const { return config().model.encoder_layers > 0; }
  bool makes_images() const { return config().model.image_height > 0; }

  // "routing: …" on standard error, unless --quiet.
  void say(const std::string& line) const;
  // Has this rank nothing to do but to read its piece of the prompt?
  bool only_reads() const { return ranks != nullptr && ranks->rank() + 1 < ranks->size(); }

  // As the arguments ask; says why if it is a slow one. The report hears of prompts, and so do those who read `pieces`.
  std::unique_ptr<Decoder> decoder(GenerationReport& report, PieceExchange* pieces = nullptr) const;
  GenerateOptions options() const;
  // What is said at the end.
  void say_summary(const GenerationReport& report, const Decoder& decoder, std::int64_t prompt_tokens) const;
  // What the JSON object of each sample ends with: how it was sampled, from what, and what it is worth.
  void add_facts(nlohmann::ordered_json& object, const Decoder& decoder) const;
};

// One line; bytes that are not UTF-8 become U+FFFD.
std::string json_line(const nlohmann::ordered_json& object);

// Both return the exit code.
int generate_text(const GenerateJob& job, Prompt prompt);
int generate_images(const GenerateJob& job);

}  // namespace routing
