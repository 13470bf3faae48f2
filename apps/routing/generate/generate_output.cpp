#include "generate/generate_output.h"

#include "shell/json_text.h"
#include "shell/output.h"

#include <array>
#include <sstream>

namespace routing {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Tokenizer& tokenizer, std::int32_t token) {
  return tokenizer.decode(std::array{token});
}

Json json_of(const std::vector<TokenDraw>& draws, const Tokenizer& tokenizer) {
  Json list = Json::array();
  for (const TokenDraw& draw : draws) {
    list.push_back({draw.token, draw.log_probability, text_of(tokenizer, draw.token)});
  }
  return list;
}

std::string text_of(const Tokenizer& tokenizer, const Prompt& prompt) {
  return prompt.text.empty() ? tokenizer.decode(prompt.ids) : prompt.text;
}

}  // namespace

void SamplePrinter::begin(std::int64_t number) {
  if (job_->arguments.num_samples > 1) {
    write_now("=== sample " + std::to_string(number + 1) + " of " + std::to_string(job_->arguments.num_samples) +
              " ===\n");
  }
  line_is_open_ = true;
  if (!job_->arguments.echo || job_->arguments.logprobs) return;
  write_piece(text_of(*tokenizer_, *prompt_));
}

void SamplePrinter::write_piece(const std::string& text) {
  if (text.empty()) return;
  write_now(text);
  line_is_open_ = text.back() != '\n';
}

void SamplePrinter::write_token(const TokenDraw& draw, const std::vector<TokenDraw>& alternatives) {
  std::ostringstream line;
  line.precision(8);
  line << draw.token << '\t' << draw.log_probability << '\t' << json_text(text_of(*tokenizer_, draw.token));
  if (!alternatives.empty()) line << '\t' << json_text(json_of(alternatives, *tokenizer_));
  line << '\n';
  write_piece(line.str());
}

void SamplePrinter::end() {
  if (line_is_open_) write_now("\n");
  line_is_open_ = false;
}

void SamplePrinter::write(const TextSample& sample, const Decoder& decoder) {
  if (job_->arguments.json) {
    write_json(sample, decoder);
    return;
  }
  begin(sample.number);
  if (job_->arguments.logprobs) {
    for (std::size_t i = 0; i < sample.draws.size(); ++i) {
      write_token(sample.draws[i], sample.alternatives.empty() ? std::vector<TokenDraw>() : sample.alternatives[i]);
    }
  } else {
    write_piece(sample.text);
  }
  end();
}

void SamplePrinter::write_json(const TextSample& sample, const Decoder& decoder) {
  const double seconds = sample.seconds;
  const auto count = static_cast<double>(sample.tokens.size());
  Json object{{"sample", sample.number}, {"prompt_tokens", prompt_->ids.size()}};
  if (job_->arguments.echo) object["prompt"] = text_of(*tokenizer_, *prompt_);
  object["new_tokens"] = sample.tokens.size();
  object["tokens"] = sample.tokens;
  object["text"] = sample.text;
  object["stop_reason"] = sample.stop_reason;
  if (job_->arguments.logprobs) {
    Json values = Json::array();
    for (const TokenDraw& draw : sample.draws) values.push_back(draw.log_probability);
    object["logprobs"] = values;
    Json all = Json::array();
    for (const std::vector<TokenDraw>& draws : sample.alternatives) all.push_back(json_of(draws, *tokenizer_));
    if (!all.empty()) object["alternatives"] = all;
  }
  if (sample.hypothesis) {
    object["log_probability"] = sample.hypothesis->log_probability;
    object["score"] = sample.hypothesis->score;
  }
  object["tokens_per_second"] = seconds > 0.0 ? count / seconds : 0.0;
  if (sample.seconds_to_first_token > 0.0) object["seconds_to_first_token"] = sample.seconds_to_first_token;
  job_->add_facts(object, decoder);
  write_now(json_line(object));
}

}  // namespace routing
