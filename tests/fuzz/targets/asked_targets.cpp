// What is asked for: bodies of requests, texts that come token by token, options and ids of `routing generate`.
#include "fuzz/targets.h"
#include "generate/generate_options.h"
#include "generate/generate_prompt.h"
#include "routing/core/utf8.h"
#include "routing/data/tokenizers/byte_tokenizer.h"
#include "routing/generation/text_stream.h"
#include "serve/request/api_error.h"
#include "serve/request/api_fields.h"
#include "serve/request/completion_fields.h"
#include "shell/json_text.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <sstream>

namespace routing::fuzz {
namespace {

void check(const SamplingFields& fields) {
  hold(fields.choices >= 1 && std::isfinite(fields.sampling.temperature) && fields.sampling.top_p > 0.0,
       "impossible fields");
  validate(fields.sampling);
}

void read_fields(std::uint8_t what, std::string_view body) {
  const CompletionLimits limits{.max_tokens = 300, .choices = 8};
  ApiFields fields(body);
  if (what == 0) {
    const CompletionFields completion = completion_fields(fields, limits);
    check(completion);
    hold(!completion.prompts.empty() && completion.max_tokens <= 300, "limits that do not hold");
    hold(static_cast<std::int64_t>(completion.prompts.size()) * completion.choices <= 8, "more choices than allowed");
  } else if (what == 1) {
    check(image_fields(fields, limits));
  } else {
    text_or_tokens(fields);
  }
}

void run_request_fields(Bytes bytes) {
  InputCutter input(bytes);
  const std::uint8_t what = input.byte() % 3;
  const std::string body = input.rest();
  try {
    read_fields(what, body);
  } catch (const std::exception& error) {
    // As the server answers; what is not the client's fault would be told as ours.
    const ApiError answer = api_error_of(error);
    hold(answer.status() == 400, std::string("not told as a fault of the request: ") + error.what());
    json_text(error_json(answer.status(), answer.what(), answer.param()));
  }
}

// The stop texts, by their sizes, then the text.
void run_text_stream(Bytes bytes) {
  InputCutter input(bytes);
  std::vector<std::string> stops;
  for (std::size_t count = input.byte() % 4; count > 0; --count) {
    std::string stop = input.text(1 + input.byte() % 4);
    if (!stop.empty()) stops.push_back(std::move(stop));
  }
  const std::string text = input.rest();
  std::size_t end = text.size();
  for (const std::string& stop : stops) end = std::min(end, text.find(stop));
  const ByteTokenizer tokenizer;
  TextStream stream(tokenizer, stops);
  // A stop text that is not UTF-8 may cut a character.
  const bool is_utf8 = !first_invalid_utf8(text) &&
                       std::none_of(stops.begin(), stops.end(),
                                    [](const std::string& stop) { return first_invalid_utf8(stop).has_value(); });
  std::string all;
  const auto take = [&](const std::string& piece) {
    hold(!is_utf8 || !first_invalid_utf8(piece), "a piece of UTF-8 that is not UTF-8");
    all += piece;
  };
  for (const char letter : text) take(stream.add(static_cast<unsigned char>(letter)));
  take(stream.finish());
  hold(all == text.substr(0, end), "another text than the whole up to the first stop");
}

// A line for each argument.
void run_generate_options(Bytes bytes) {
  std::istringstream lines{std::string(text_of(bytes))};
  std::vector<std::string> words;
  for (std::string line; std::getline(lines, line) && words.size() < 64;) words.push_back(line);
  // The first, because refusals take longer than all else.
  if (!words.empty()) {
    takes([&] { parse_ids(words.front(), "--prompt-ids"); });
  }
  // CLI11 takes them from behind.
  std::reverse(words.begin(), words.end());
  // Made once: forty options take longer than reading their values. CLI11 forgets what it parsed before, and what it
  // stored is made anew here.
  static GenerateArguments arguments;
  static CLI::App app("generate", "generate");
  [[maybe_unused]] static const bool has_options = (add_generate_options(app, arguments), true);
  arguments = {};
  try {
    app.parse(words);
  } catch (const CLI::ParseError&) {
    return;  // `routing` says it in its own words
  }
  takes([&] {
    finish_generate_options(app, arguments);
    hold(arguments.num_samples >= 1 && arguments.batch_size >= 1 && arguments.beams >= 0, "impossible options");
    validate(arguments.sampling);
  });
}

std::vector<std::string> request_fields_seeds() {
  return {
      R"({"model":"m","prompt":"a","max_tokens":5,"temperature":0.5,"top_p":0.9,"top_k":3,"min_p":0.1,"seed":7,"n":2,"stop":["\n","b"],)"
      R"("stream":true,"stream_options":{"include_usage":true},"echo":true,"logprobs":3,"ignore_end":false})" +
          std::string(1, '\0'),
      R"({"prompt":[[1,2],[3]],"suffix":"","best_of":1,"user":"u","presence_penalty":0})" + std::string(1, '\0'),
      R"({"prompt":["a","b"],"repetition_penalty":1.1,"stop":"x","frequency_penalty":0.0,"logit_bias":{}})" +
          std::string(1, '\0'),
      R"({"image":"iVBORw0=","rows":1,"n":1,"seed":9007199254740991,"response_format":"b64_json"})" +
          std::string(1, '\1'),
      R"({"tokens":[1,2147483647]})" + std::string(1, '\2'),
      R"({"text":"\ud83d\ude00"})" + std::string(1, '\2')};
}

std::vector<std::string> text_stream_seeds() {
  return {
      "ab"
      "abcxaabcd" +
          literal("\1\2"),
      "\xe2\x96\x81h\xc3\xa9\xf0\x9f\x98\x80" + std::string(1, '\0'), "abcbab" + literal("\0\2\2"),
      "\xff\xc3"
      "a" +
          std::string(1, '\0')};
}

std::vector<std::string> generate_options_seeds() {
  return {
      "runs/a\n--prompt\nOnce "
      "upon\n-n\n5\n--temperature\n0.5\n--top-k\n3\n--top-p=0.9\n--stop\n\\n\n--seed\n18446744073709551615\n",
      "runs/a\n--prompt-ids\n3,17,5\n--samples\n3\n--beams\n4\n--length-penalty\n1.5\n--json\n--logprobs\n3\n",
      "runs/a\n-\n--no-cache\n--out\nx.txt\n--force\n--echo\n--batch-size\n0\n--memory-limit\n-1\n",
      "--prompt-ids\n1 2 3\n99999999999\n1,,2\n"};
}

}  // namespace

FuzzTarget request_fields_target() {
  return {"request_fields", run_request_fields, request_fields_seeds, 1024};
}
FuzzTarget text_stream_target() {
  return {"text_stream", run_text_stream, text_stream_seeds, 256};
}
FuzzTarget generate_options_target() {
  return {"generate_options", run_generate_options, generate_options_seeds, 512};
}

}  // namespace routing::fuzz
