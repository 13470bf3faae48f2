#include "shell/options.h"

#include "routing/config/text/path_list.h"
#include "shell/key_values.h"

#include <charconv>

namespace routing {
namespace {

// An empty one is a variable of the shell that was not set; a line ends a path of the list.
CLI::Validator a_path() {
  const auto complaint = [](std::string& path) -> std::string {
    if (path.empty()) return "the path is empty; name a file or a folder";
    return path.find('\n') == std::string::npos ? "" : "the path has a line end in it; rename the file";
  };
  return {complaint, "", "path"};
}

// As CLI::IsMember, CLI11 writes the words into the name of the value's type.
class OfferedWords : public CLI::Validator {
 public:
  explicit OfferedWords(std::function<std::vector<std::string>()> words) {
    desc_function_ = [words = std::move(words)] { return "{" + CLI::detail::join(words(), ",") + "}"; };
    func_ = [](std::string& /*value*/) { return std::string(); };
    non_modifying_ = true;
  }
};

constexpr const char* kExampleStart = "Example  ";

}  // namespace

CLI::Option* OptionGroup::finish(CLI::Option* option, const OptionText& text, const CLI::Validator& check) {
  const std::size_t space = text.names.find(' ');
  if (space != std::string::npos) option->type_name(text.names.substr(space + 1));
  option->check(check)->group(title_)->capture_default_str();
  if (!text.words.empty()) option->check(offers([words = text.words] { return words; }));
  std::string value = option->get_default_str();
  if (!check(value).empty()) option->default_str("");
  return option;
}

CLI::Option* OptionGroup::finish_list(CLI::Option* option, const OptionText& text, const CLI::Validator& check) {
  finish(option, text, check)->default_str("");
  if (option->get_positional()) return option;
  return option->allow_extra_args(false)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

CLI::Option* OptionGroup::add_paths(const OptionText& text, std::string& list) {
  const auto join = [&list](const std::vector<std::string>& paths) { list = path_list(paths); };
  return finish_list(app_.add_option_function<std::vector<std::string>>(flags_of(text), join, text.help), text,
                     a_path());
}

CLI::Option* OptionGroup::add_key(const OptionText& text, const std::string& key, std::vector<std::string>& settings) {
  const auto append = [&settings, key](const std::string& value) { settings.push_back(key + "=" + value); };
  return finish(app_.add_option_function<std::string>(flags_of(text), append, text.help), text,
                offers([key] { return key_values(key); }));
}

CLI::Option* OptionGroup::flag(const OptionText& text, bool& value) {
  return app_.add_flag(text.names, value, text.help)->disable_flag_override()->group(title_);
}

CLI::Validator whole_number(std::int64_t smallest, std::int64_t largest) {
  const auto complaint = [smallest, largest](std::string& text) -> std::string {
    std::int64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, failure] = std::from_chars(text.data(), end, value);
    const bool too_long = failure == std::errc::result_out_of_range;
    if (stop != end || (failure != std::errc() && !too_long)) return "'" + text + "' is not a whole number";
    if (too_long || value < smallest || value > largest) {
      return text + " is out of range; allowed are " + std::to_string(smallest) + " to " + std::to_string(largest);
    }
    return "";
  };
  // Without a description: CLI11 would print it into the help.
  return {complaint, "", "whole number"};
}

CLI::Validator one_of(std::vector<std::string> words) {
  return CLI::IsMember(std::move(words));
}

CLI::Validator a_split() {
  return one_of({"train", "valid", "test"});
}

CLI::Validator offers(std::function<std::vector<std::string>()> words) {
  return OfferedWords(std::move(words));
}

std::vector<std::string> offered_words(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t begin = type.find(":{");
  if (begin == std::string::npos || !type.ends_with("}") || type.size() == begin + 3) return {};
  return CLI::detail::split(type.substr(begin + 2, type.size() - begin - 3), ',');
}

CLI::App* add_command(CLI::App& parent, const std::string& name, const std::string& description,
                      const std::string& example) {
  CLI::App* app = parent.add_subcommand(name, description);
  app->footer(help_footer(example));
  return app;
}

std::string help_footer(const std::string& example) {
  std::string exit = "Exit  ";
  for (const ExitCode& code : kExitCodes) exit += "   " + std::to_string(code.code) + " " + code.meaning;
  return kExampleStart + example + "\n" + exit;
}

std::string example_in(const std::string& footer) {
  const std::string first = footer.substr(0, footer.find('\n'));
  return first.starts_with(kExampleStart) ? first.substr(std::string_view(kExampleStart).size()) : "";
}

}  // namespace routing
