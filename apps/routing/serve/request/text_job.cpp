#include "serve/request/text_job.h"

#include "shell/json_text.h"

#include <algorithm>
#include <ctime>
#include <random>
#include <sstream>

namespace routing {
namespace {

using Json = nlohmann::ordered_json;

// Logits of all places of a prompt at once, for its log probabilities.
constexpr std::int64_t kMostPromptLogits = std::int64_t{1} << 27;

std::string new_id() {
  std::random_device device;
  std::ostringstream text;
  text << "cmpl-" << std::hex << device() << device();
  return text.str();
}

// As JSON; most pieces are a few letters that need nothing but their quotes.
std::string quoted(const std::string& text) {
  const auto is_plain = [](char letter) { return letter >= ' ' && letter < 0x7f && letter != '"' && letter != '\\'; };
  if (!std::all_of(text.begin(), text.end(), is_plain)) return json_text(text);
  return '"' + text + '"';
}

// Appends the lists of `more`, name by name.
void append(Json& lists, Json more) {
  if (more.is_null()) return;
  if (lists.is_null()) {
    lists = std::move(more);
    return;
  }
  for (const auto& [name, list] : more.items()) lists[name].insert(lists[name].end(), list.begin(), list.end());
}

}  // namespace

TextJob::TextJob(JobSurroundings& surroundings, JobRequest request, CompletionFields fields)
    : DecodingJob(surroundings, std::move(request)),
      fields_(std::move(fields)),
      id_(new_id()),
      created_(static_cast<std::int64_t>(std::time(nullptr))) {}

// As scored in one pass: what the model gives each token of the prompt.
Json TextJob::prompt_records(const std::vector<std::int32_t>& ids, ServedModel& model) const {
  if (ids.empty()) return nullptr;
  const std::int64_t vocabulary = model.config().model.vocab_size;
  const auto length = static_cast<std::int64_t>(ids.size());
  if (length > kMostPromptLogits / vocabulary) {
    throw ApiError(400,
                   "echo with logprobs needs the logits of all " + std::to_string(length) + " tokens of the prompt; " +
                       std::to_string(kMostPromptLogits / vocabulary) +
                       " are the most; POST /v1/score takes longer texts",
                   "logprobs");
  }
  const at::NoGradGuard no_gradient;
  at::Tensor tokens = at::empty({1, length}, at::kLong);
  std::copy(ids.begin(), ids.end(), tokens.data_ptr<std::int64_t>());
  const at::Tensor logits = model.model->logits({.tokens = tokens}, {.precision = model.precision}).contiguous();
  const Tokenizer& tokenizer = *model.tokenizer;
  const auto known = static_cast<std::size_t>(std::min(vocabulary, tokenizer.vocabulary_size()));
  TokenRecords records(tokenizer, 0);
  for (std::int64_t place = 0; place < length; ++place) {
    const std::span<const float> row(logits.data_ptr<float>() + place * vocabulary, known);
    const std::int32_t token = ids[static_cast<std::size_t>(place)];
    records.add({.draw = {.token = token, .log_probability = log_probability(row, token)},
                 .likeliest = most_likely(row, *fields_.logprobs)});
  }
  return records.take();
}

TextJob::Prompt TextJob::read_prompt(const TextOrIds& given, ServedModel& model) const {
  const Tokenizer& tokenizer = model.text_of("POST /v1/images/completions draws them");
  Prompt prompt;
  if (const auto* ids = std::get_if<std::vector<std::int32_t>>(&given)) {
    prompt.ids = *ids;
    if (fields_.echo) prompt.text = tokenizer.decode(prompt.ids);
  } else {
    prompt.text = std::get<std::string>(given);
    tokenizer.encode(prompt.text, prompt.ids);
  }
  if (fields_.echo && fields_.logprobs) {
    if (model.reads_source()) {
      throw ApiError(400, "echo with logprobs asks what the prompt costs, but a source is read, not predicted", "echo");
    }
    prompt.records = prompt_records(prompt.ids, model);
  }
  if (!fields_.echo) prompt.text.clear();
  return prompt;
}

DecodingJob::Prepared TextJob::prepare(ServedModel& model) {
  Prepared prepared;
  for (const TextOrIds& given : fields_.prompts) {
    prompts_.push_back(read_prompt(given, model));
    const Prompt& prompt = prompts_.back();
    prepared.prompt_tokens += static_cast<std::int64_t>(prompt.ids.size());
    for (std::int64_t sample = 0; sample < fields_.choices; ++sample) {
      Choice choice;
      choice.text = std::make_unique<ChoiceText>(
          *model.tokenizer,
          ChoiceText::Options{
              .stops = fields_.stops, .logprobs = fields_.logprobs, .characters = count_characters(prompt.text)});
      choice.finish_reason = "length";
      choices_.push_back(std::move(choice));
    }
    if (fields_.max_tokens == 0) continue;
    prepared.requests.push_back({.prompt = prompt.ids,
                                 .sampling = fields_.sampling,
                                 .max_new_tokens = fields_.max_tokens,
                                 .samples = fields_.choices,
                                 .end_token = fields_.ignore_end ? -1 : model.end_token(),
                                 .known_tokens = model.tokenizer->vocabulary_size()});
  }
  return prepared;
}

const TextJob::Prompt& TextJob::prompt_of(std::size_t choice) const {
  return prompts_[choice / static_cast<std::size_t>(fields_.choices)];
}

bool TextJob::take(std::size_t number, const TokenDraw& draw, std::span<const float> logits) {
  Choice& choice = choices_[number];
  const bool goes_on = choice.text->add(draw, logits);
  if (fields_.stream && goes_on && choice.text->has_piece()) send_piece(number);
  return goes_on;
}

void TextJob::end(std::size_t number, StopReason reason) {
  Choice& choice = choices_[number];
  choice.text->finish();
  choice.finish_reason = choice.text->stopped() || reason == StopReason::end ? "stop" : "length";
  if (fields_.stream) {
    send_choice(json_text(choice_json(number, choice.text->take(), choice.finish_reason)));
  }
}

void TextJob::send_piece(std::size_t number) {
  Choice& choice = choices_[number];
  if (fields_.logprobs || !choice.has_begun) {
    send_choice(json_text(choice_json(number, choice.text->take(), nullptr)));
    return;
  }
  // What nearly every event is, as choice_json() has it: made without the object, in a tenth of the time.
  send_choice("{\"index\":" + std::to_string(number) + ",\"text\":" + quoted(choice.text->take().text) +
              ",\"logprobs\":null,\"finish_reason\":null}");
}

// What stands around the choice is the same in every event of a stream, and there is an event for every token.
void TextJob::send_choice(const std::string& choice) {
  if (event_begin_.empty()) {
    event_begin_ = json_text(head());
    event_begin_.back() = ',';
    event_begin_ += "\"choices\":[";
  }
  send_event_text(event_begin_ + choice + "]}");
}

Json TextJob::choice_json(std::size_t number, ChoiceText::Piece piece, const char* finish_reason) {
  Choice& choice = choices_[number];
  Json records = nullptr;
  std::string text;
  if (!choice.has_begun && fields_.echo) {
    text = prompt_of(number).text;
    records = prompt_of(number).records;
  }
  choice.has_begun = true;
  append(records, std::move(piece.logprobs));
  const Json none = nullptr;
  return {{"index", number},
          {"text", text + piece.text},
          {"logprobs", fields_.logprobs ? records : none},
          {"finish_reason", finish_reason == nullptr ? none : Json(finish_reason)}};
}

Json TextJob::head() const {
  Json object{{"id", id_},
              {"object", "text_completion"},
              {"created", created_},
              {"model", served_name()},
              {"seed", fields_.sampling.seed}};
  add_labels(object);
  return object;
}

void TextJob::answer() {
  if (fields_.stream) {
    // Of choices that had nothing to draw nobody has told yet.
    if (fields_.max_tokens == 0) {
      for (std::size_t number = 0; number < choices_.size(); ++number) end(number, StopReason::length);
    }
    if (!fields_.streams_usage) return;
    Json object = head();
    object["choices"] = Json::array();
    object["usage"] = usage();
    send_event(object);
    return;
  }
  Json all = Json::array();
  for (std::size_t number = 0; number < choices_.size(); ++number) {
    all.push_back(choice_json(number, choices_[number].text->take(), choices_[number].finish_reason));
  }
  Json object = head();
  object["choices"] = std::move(all);
  object["usage"] = usage();
  send_whole(object);
}

}  // namespace routing
