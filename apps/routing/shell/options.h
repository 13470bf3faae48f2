// The options of commands, a line each: names, value and help, then where the value goes and what it may be.
//
//   OptionGroup run(app, "Run");
//   run.add({"--steps N", "optimiser steps"}, options.steps, whole_number(1));
//   run.flag({"--dry-run", "print the resolved configuration and stop"}, options.dry_run);
#pragma once

#include <CLI/CLI.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace routing {

// What the help says of an option. A value has its name behind those of the option: "-n,--tokens N". By some names the
// completion of shells knows what to offer: FILE, PATH, DIR, RUN, PRESET and KEY=VALUE (help/completion_values.cpp).
struct OptionText {
  std::string names;
  std::string help;
  std::vector<std::string> words = {};  // offered as well; others may be allowed
};

// Options that several commands have.
inline const OptionText kCheckpointOption{
    "--checkpoint WHICH", "which checkpoint of a run: best, last, or a step", {"best", "last"}};
inline const OptionText kPrecisionOption{
    "--precision P", "of matrix products: fp32, bf16 or auto; default: as trained", {"fp32", "bf16", "auto"}};
inline const OptionText kDataOption{
    "--data PATH", "file, folder or pattern; may be repeated for texts; default: what the model was trained on"};
inline const OptionText kVocabularyOption{"--vocabulary FILE", "of words or subwords; default: the one the run keeps"};
inline const OptionText kSplitOption{"--split PART", "train, valid or test"};
inline const OptionText kSettingsOption{"--set KEY=VALUE", "change one configuration key; may be repeated"};
inline const OptionText kRequireWholeFlag{"--require-whole",
                                          "refuse a part of a data set instead of labelling its figures"};
inline const OptionText kFigureOption{"--out FILE", "figure to write, .png or .svg; may be repeated"};
inline const OptionText kJsonFlag{"--json", "print the result as JSON"};

// Options that stand together under a title in the help of a command. What has no dashes is an argument without a name.
class OptionGroup {
 public:
  OptionGroup(CLI::App& app, std::string title) : app_(app), title_(std::move(title)) {}

  // The value that is there is the default. The help shows it unless it could not be given: an empty text, or a number
  // that the check refuses, means that the option was left out. Of a list each value is given by an option of its own.
  template <class Value>
  CLI::Option* add(const OptionText& text, Value& value, const CLI::Validator& check = {}) {
    return finish(app_.add_option(flags_of(text), value, text.help), text, check);
  }
  template <class Value>
  CLI::Option* add(const OptionText& text, std::vector<Value>& values, const CLI::Validator& check = {}) {
    return finish_list(app_.add_option(flags_of(text), values, text.help), text, check);
  }
  // Values with commas between them.
  template <class Value>
  CLI::Option* add_list(const OptionText& text, std::vector<Value>& values, const CLI::Validator& check = {}) {
    return add(text, values, check)->delimiter(',')->default_str(CLI::detail::join(values, ","));
  }
  // Paths, each given by an option of its own, or several arguments, as one list (config/text/path_list.h).
  CLI::Option* add_paths(const OptionText& text, std::string& list);
  // A short name of a configuration key: what is given is appended to the settings, as "train.steps=200".
  CLI::Option* add_key(const OptionText& text, const std::string& key, std::vector<std::string>& settings);
  CLI::Option* flag(const OptionText& text, bool& value);

 private:
  static std::string flags_of(const OptionText& text) { return text.names.substr(0, text.names.find(' ')); }
  CLI::Option* finish(CLI::Option* option, const OptionText& text, const CLI::Validator& check);
  CLI::Option* finish_list(CLI::Option* option, const OptionText& text, const CLI::Validator& check);

  CLI::App& app_;
  std::string title_;
};

// Refuses what is not a whole number in this range.
CLI::Validator whole_number(std::int64_t smallest, std::int64_t largest = std::numeric_limits<std::int64_t>::max());
// Refuses all other words.
CLI::Validator one_of(std::vector<std::string> words);
// train, valid or test.
CLI::Validator a_split();
// Refuses nothing; the completion of shells offers these words, and asks for them only then.
CLI::Validator offers(std::function<std::vector<std::string>()> words);
// Those that the completion of shells offers for an option: by one_of(), offers() or its text.
std::vector<std::string> offered_words(const CLI::Option& option);

// A command with its help: the first line of `description` also stands in the list of commands, `example` at the end.
CLI::App* add_command(CLI::App& parent, const std::string& name, const std::string& description,
                      const std::string& example);
// What stands at the end of every help text: an example and the exit codes.
std::string help_footer(const std::string& example);
// The example in such a footer.
std::string example_in(const std::string& footer);

struct ExitCode {
  int code;
  const char* meaning;
};
inline constexpr std::array<ExitCode, 4> kExitCodes{
    {{0, "done"}, {1, "failed while running"}, {2, "wrong usage or configuration"}, {130, "interrupted, state saved"}}};

}  // namespace routing
