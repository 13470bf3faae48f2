#include "generate/generate_options.h"

#include "shell/command_line.h"
#include "shell/options.h"

#include <charconv>

namespace routing {
namespace {

constexpr std::int64_t kMostTokens = 1000000000;
constexpr std::int64_t kMostMebibytes = std::int64_t{1} << 40;

void add_prompt_options(CLI::App& app, GenerateArguments& arguments) {
  OptionGroup prompt(app, "Prompt");
  prompt.add({"PROMPT", "-: read the prompt from standard input", {"-"}}, arguments.dash);
  prompt.add({"--prompt TEXT", "text to go on from; default: from nothing"}, arguments.prompt);
  prompt.add({"--prompt-file FILE", "a file with that text"}, arguments.prompt_file);
  prompt.add({"--prompt-ids IDS", "token ids instead: 3,17,5; also the source of a copy model"}, arguments.prompt_ids);
  prompt.add({"--image FILE", "complete the lower half of this PNG file; may be repeated"}, arguments.images);
  prompt.add({"--complete-split PART", "complete the first --num-samples images of train, valid or test"},
             arguments.complete_split, a_split());
}

void add_sampling_options(CLI::App& app, GenerateArguments& arguments) {
  SamplingOptions& options = arguments.sampling;
  OptionGroup sampling(app, "Sampling");
  sampling.add({"--temperature T", "0 takes the most likely token"}, options.temperature);
  sampling.add({"--top-k K", "only the k most likely tokens; 0: all"}, options.top_k, whole_number(0));
  sampling.add({"--top-p P", "the most likely tokens with this share; 1: all"}, options.top_p);
  sampling.add({"--min-p P", "tokens at least this likely against the best; 0: all"}, options.min_p);
  sampling.add({"--repetition-penalty R", "above 1 is against tokens seen already"}, options.repetition_penalty);
  sampling.add({"--seed N", "the same seed gives the same samples"}, options.seed, whole_number(0));
  sampling.add({"--num-samples N", "samples; with --beams, the best N"}, arguments.num_samples,
               whole_number(1, 1000000));
  sampling.add({"--beams N", "search with N beams instead of sampling; 1 is greedy"}, arguments.beams, whole_number(1));
  sampling.add({"--length-penalty A", "of beams: divides log probability by length^this"}, arguments.length_penalty);
}

void add_end_options(CLI::App& app, GenerateArguments& arguments) {
  OptionGroup end(app, "End");
  end.add({"-n,--max-new-tokens N", "tokens of a sample; default: 256, or as trained for an encoder-decoder"},
          arguments.max_new_tokens, whole_number(1, kMostTokens));
  end.add({"--stop TEXT", R"(end before this text; \n is a new line, \t a tab, \\ a backslash; may be repeated)"},
          arguments.stops);
  end.flag({"--ignore-end", "go on past the token that ends a document"}, arguments.ignore_end);
}

void add_speed_options(CLI::App& app, GenerateArguments& arguments) {
  OptionGroup speed(app, "Speed");
  speed.add({"--batch-size N", "samples decoded together; changes speed and memory only"}, arguments.batch_size,
            whole_number(1));
  speed.add({"--prefill-block N", "tokens of a prompt read at once; the same"}, arguments.prefill_block,
            whole_number(1));
  speed.add(kPrecisionOption, arguments.precision);
  speed.flag({"--no-cache", "run the whole prefix again for every token, to compare"}, arguments.no_cache);
  speed.add({"--memory-limit MIB", "for keys and values; default: what is available"}, arguments.memory_limit,
            whole_number(1, kMostMebibytes));
}

void add_rank_options(CLI::App& app, GenerateArguments& arguments) {
  OptionGroup ranks(app, "Ranks");
  add_rank_options(ranks, arguments.ranks, "read the prompt together, a piece each; the last one goes on, to the bit");
}

void add_output_options(CLI::App& app, GenerateArguments& arguments) {
  OptionGroup output(app, "Output");
  output.add({"--out DIR", "folder for images; default: samples-SEED in the run's folder"}, arguments.out);
  output.flag({"--force", "replace images that are there"}, arguments.force);
  output.flag({"--echo", "write the prompt before each sample"}, arguments.echo);
  const auto count_or_nothing = [](std::string& text) {
    return text.empty() || text == "-" ? std::string() : whole_number(0, 1000000)(text);
  };
  output
      .add({"--logprobs [N]", "a line per token: id, log probability, text, and the N most likely"},
           arguments.logprobs_value, CLI::Validator(count_or_nothing, "", "count"))
      ->expected(0, 1);
  output.flag({"--json", "a JSON object per sample, each on its line"}, arguments.json);
}

std::string without_escapes(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char next = text[i] == '\\' && i + 1 < text.size() ? text[i + 1] : ' ';
    const bool escaped = next == 'n' || next == 't' || next == '\\';
    result += !escaped ? text[i] : next == 'n' ? '\n' : next == 't' ? '\t' : next;
    if (escaped) ++i;
  }
  return result;
}

}  // namespace

void add_generate_options(CLI::App& app, GenerateArguments& arguments) {
  OptionGroup model(app, "Model");
  model.add({"RUN", "what to sample from"}, arguments.run)->required();
  model.add(kCheckpointOption, arguments.checkpoint);
  model.add(kVocabularyOption, arguments.vocabulary);
  add_prompt_options(app, arguments);
  add_sampling_options(app, arguments);
  add_end_options(app, arguments);
  add_speed_options(app, arguments);
  add_rank_options(app, arguments);
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
  for (std::string& stop : arguments.stops) stop = without_escapes(stop);
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
  if (arguments.ranks.count > 1) {
    refuse_given(arguments, {"-", "--no-cache", "--prefill-block", "--image", "--complete-split"},
                 "is for one process, but --ranks is " + std::to_string(arguments.ranks.count));
    if (!arguments.has("--prompt") && !arguments.has("--prompt-file") && !arguments.has("--prompt-ids")) {
      throw UsageError("--ranks is " + std::to_string(arguments.ranks.count) + ", but there is no prompt to read",
                       "give one with --prompt-file FILE, or leave out --ranks");
    }
    refuse_two_sets_of_ranks(arguments.ranks);
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
