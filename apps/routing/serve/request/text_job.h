// POST /v1/completions.
#pragma once

#include "serve/request/choice_text.h"
#include "serve/request/decoding_job.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace routing {

class TextJob : public DecodingJob {
 public:
  TextJob(JobSurroundings& surroundings, JobRequest request, CompletionFields fields);

 protected:
  const SamplingFields& fields() const override { return fields_; }
  Prepared prepare(ServedModel& model) override;
  bool take(std::size_t number, const TokenDraw& draw, std::span<const float> logits) override;
  void end(std::size_t number, StopReason reason) override;
  void answer() override;

 private:
  struct Prompt {
    std::vector<std::int32_t> ids = {};
    std::string text = {};                     // of echo
    nlohmann::ordered_json records = nullptr;  // likewise, of logprobs
  };
  struct Choice {
    std::unique_ptr<ChoiceText> text = {};
    const char* finish_reason = nullptr;
    bool has_begun = false;  // of a stream: the prompt was echoed
  };
  Prompt read_prompt(const TextOrIds& given, ServedModel& model) const;
  nlohmann::ordered_json prompt_records(const std::vector<std::int32_t>& ids, ServedModel& model) const;
  nlohmann::ordered_json head() const;
  nlohmann::ordered_json choice_json(std::size_t number, ChoiceText::Piece piece, const char* finish_reason);
  void send_piece(std::size_t number);
  void send_choice(const std::string& choice);
  const Prompt& prompt_of(std::size_t choice) const;

  CompletionFields fields_;
  std::string id_;
  std::int64_t created_ = 0;
  std::vector<Prompt> prompts_;
  std::vector<Choice> choices_;
  std::string event_begin_;  // of a stream: everything before the choice
};

}  // namespace routing
