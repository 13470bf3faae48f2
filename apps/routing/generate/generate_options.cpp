#include "generate/generate_options.h"

#include "shell/command_line.h"

#include <charconv>

namespace routing {
namespace {

constexpr std::int64_t kMostTokens = 1000000000;
constexpr std::int64_t kMostMebibytes = std::int64_t{1} << 40;

void add_prompt_options(CLI::App& app, GenerateArguments& arguments) {
  app.add_option("PROMPT", arguments.dash, "-: read the prompt from standard input")->group("Prompt");
  app.add_option("--prompt", arguments.prompt, "text to go on from; default: from nothing")
      ->type_name("TEXT")
      ->group("Prompt");
  app.add_option("--prompt-file", arguments.prompt_file, "a file with that text")->type_name("FILE")->group("Prompt");
  app.add_option("--prompt-ids", arguments.prompt_ids, "token ids instead: 3,17,5; also the source of a copy model")
      ->type_name("IDS")
      ->group("Prompt");
  app.add_option("--image", arguments.images, "complete the lower half of this PNG file; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group("Prompt");
  app.add_option("--complete-split", arguments.complete_split,
                 "complete the first --num-samples images of train, valid or test")
      ->type_name("PART")
      ->check(CLI::IsMember({"train", "valid", "test"}))
      ->group("Prompt");
}

void add_sampling_options(CLI::App& app, GenerateArguments& arguments) {
  SamplingOptions& sampling = arguments.sampling;
  app.add_option("--temperature", sampling.temperature, "0 takes the most likely token")
      ->type_name("T")
      ->capture_default_str()
      ->group("Sampling");
  app.add_option("--top-k", sampling.top_k, "only the k most likely tokens; 0: all")
      ->type_name("K")
      ->check(whole_number(0))
      ->capture_default_str()
      ->group("Sampling");
  app.add_option("--top-p", sampling.top_p, "the most likely tokens with this share; 1: all")
      ->type_name("P")
      ->capture_default_str()
      ->group("Sampling");
  app.add_option("--min-p", sampling.min_p, "tokens at least this likely against the best; 0: all")
      ->type_name("P")
      ->capture_default_str()
      ->group("Sampling");
  app.add_option("--repetition-penalty", sampling.repetition_penalty, "above 1 is against tokens seen already")
      ->type_name("R")
      ->capture_default_str()
      ->group("Sampling");
  app.add_option("--seed", sampling.seed, "the same seed gives the same samples")
      ->type_name("N")
      ->check(whole_number(0))
      ->capture_default_str()
      ->group("Sampling");
  app.add_option("--num-samples", arguments.num_samples, "samples; with --beams, the best N")
      ->type_name("N")
      ->check(whole_number(1, 1000000))
      ->capture_default_str()
      ->group("Sampling");
  app.add_option("--beams", arguments.beams, "search with N beams instead of sampling; 1 is greedy")
      ->type_name("N")
      ->check(whole_number(1))
      ->group("Sampling");
  app.add_option("--length-penalty", arguments.length_penalty, "of beams: divides log probability by length^this")
      ->type_name("A")
      ->capture_default_str()
      ->group("Sampling");
}

void add_end_options(CLI::App& app, GenerateArguments& arguments) {
  app.add_option("-n,--max-new-tokens", arguments.max_new_tokens,
                 "tokens of a sample; default: 256, or as trained for an encoder-decoder")
      ->type_name("N")
      ->check(whole_number(1, kMostTokens))
      ->group("End");
  app.add_option("--stop", arguments.stops, "end before this text; may be repeated")
      ->type_name("TEXT")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group("End");
  app.add_flag("--ignore-end", arguments.ignore_end, "go on past the token that ends a document")
      ->disable_flag_override()
      ->group("End");
}

void add_speed_options(CLI::App& app, GenerateArguments& arguments) {
  app.add_option("--batch-size", arguments.batch_size, "samples decoded together; changes speed and memory only")
      ->type_name("N")
      ->check(whole_number(1))
      ->capture_default_str()
      ->group("Speed");
  app.add_option("--prefill-block", arguments.prefill_block, "tokens of a prompt read at once; the same")
      ->type_name("N")
      ->check(whole_number(1))
      ->capture_default_str()
      ->group("Speed");
  app.add_option("--precision", arguments.precision, "of matrix products: fp32, bf16 or auto; default: as trained")
      ->type_name("P")
      ->group("Speed");
  app.add_flag("--no-cache", arguments.no_cache, "run the whole prefix again for every token, to compare")
      ->disable_flag_override()
      ->group("Speed");
  app.add_option("--memory-limit", arguments.memory_limit, "for keys and values; default: what is available")
      ->type_name("MIB")
      ->check(whole_number(1, kMostMebibytes))
      ->group("Speed");
}

void add_output_options(CLI::App& app, GenerateArguments& arguments) {
  app.add_option("--out", arguments.out, "folder for images; default: samples-SEED in the run's folder")
      ->type_name("DIR")
      ->group("Output");
  app.add_flag("--force", arguments.force, "replace images that are there")->disable_flag_override()->group("Output");
  app.add_flag("--echo", arguments.echo, "write the prompt before each sample")
      ->disable_flag_override()
      ->group("Output");
  const auto count_or_nothing = [](std::string& text) {
    return text.empty() || text == "-" ? std::string() : whole_number(0, 1000000)(text);
  };
  app.add_option("--logprobs", arguments.logprobs_value,
                 "a line per token: id, log probability, text, and the N most likely")
      ->type_name("[N]")
      ->expected(0, 1)
      ->check(CLI::Validator(count_or_nothing, "", "count"))
      ->group("Output");
  app.add_flag("--json", arguments.json, "a JSON object per sample, each on its line")
      ->disable_flag_override()
      ->group("Output");
}

}  // namespace

void add_generate_options(CLI::App& app, GenerateArguments& arguments) {
  app.add_option("RUN", arguments.run, "what to sample from")->required()->group("Model");
  app.add_option("--checkpoint", arguments.checkpoint, "which checkpoint of a run: best, last, or a step")
      ->type_name("WHICH")
      ->capture_default_str()
      ->group("Model");
  app.add_option("--vocabulary", arguments.vocabulary, "of words or subwords; default: the one the run keeps")
      ->type_name("FILE")
      ->group("Model");
  add_prompt_options(app, arguments);
  add_sampling_options(app, arguments);
  add_end_options(app, arguments);
  add_speed_options(app, arguments);
  add_output_options(app, arguments);
}

void refuse_given(const GenerateArguments& arguments, const std::vector<std::string>& names,
                  const std::string& reason) {
  for (const std::string& name : names) {
    if (!arguments.has(name)) continue;
    throw UsageError(std::string(name).append(" ").append(reason), std::string("leave out ").append(name));
  }
}

void finish_generate_options(const CLI::App& app, GenerateArguments& arguments) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() > 0 && !option->get_lnames().empty()) arguments.given.insert("--" + option->get_lnames()[0]);
  }
  arguments.logprobs = arguments.has("--logprobs");
  const std::string& value = arguments.logprobs_value;
  if (value == "-") {
    // The dash behind --logprobs is the prompt.
    arguments.dash = value;
  } else if (!value.empty()) {
    std::from_chars(value.data(), value.data() + value.size(), arguments.alternatives);
  }
  if (arguments.dash == "-") {
    arguments.given.insert("-");
  } else if (!arguments.dash.empty()) {
    throw UsageError("unexpected argument '" + arguments.dash + "'",
                     "give the text with --prompt TEXT, or - to read it from standard input");
  }
  std::string first;
  for (const char* name : {"-", "--prompt", "--prompt-file", "--prompt-ids"}) {
    if (!arguments.has(name)) continue;
    if (!first.empty()) throw UsageError(first + " and " + name + " were both given", "one prompt is enough");
    first = name;
  }
  if (arguments.has("--image") && arguments.has("--complete-split")) {
    throw UsageError("--image and --complete-split were both given", "choose the images of one of them");
  }
  if (arguments.logprobs) refuse_given(arguments, {"--echo"}, "writes text, but --logprobs writes a line per token");
  if (arguments.no_cache) {
    refuse_given(arguments, {"--memory-limit", "--prefill-block"}, "is for a cache, but --no-cache has none");
  }
  if (arguments.beams == 0) {
    refuse_given(arguments, {"--length-penalty"}, "is for beams, but none were asked for with --beams N");
    return;
  }
  refuse_given(arguments,
               {"--temperature", "--top-k", "--top-p", "--min-p", "--repetition-penalty", "--seed", "--stop",
                "--logprobs", "--batch-size"},
               "is for sampling, but --beams searches");
  if (arguments.num_samples > arguments.beams) {
    throw UsageError("--num-samples is " + std::to_string(arguments.num_samples) + ", but " +
                         std::to_string(arguments.beams) + " beams find no more than that many sequences",
                     "give as many --beams");
  }
}

}  // namespace routing
