#include "help/man_page.h"

#include "help/roff.h"
#include "routing/config/keys.h"
#include "shell/help_text.h"
#include "shell/options.h"
#include "version.h"

#include <algorithm>
#include <cctype>
#include <fmt/core.h>

namespace routing {
namespace {

constexpr const char* kConfigurationName = "routing-configuration";

std::string page_name(const CLI::App& command) {
  std::string name = full_name(command);
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

// No date: a page is as old as the version.
std::string title(const ManPage& page) {
  std::string name = page.name;
  for (char& letter : name) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return fmt::format(R"(.TH {} {} "" "routing {}" "Routing Transformer")", roff_literal(name), page.section,
                     program_version()) +
         "\n";
}

std::string section(const std::string& name, const std::string& text) {
  return text.empty() ? "" : ".SH " + name + "\n" + text;
}

// A word with what it means, indented below it.
std::string item(const std::string& word, const std::string& text) {
  return ".TP\n" + word + "\n" + roff_text(text) + "\n";
}

std::string reference(const std::string& name, char page_section) {
  return roff_bold(name) + "(" + page_section + ")";
}

std::string typed_line(const std::string& line) {
  return ".nf\n" + roff_literal(line) + "\n.fi\n";
}

std::string synopsis(const CLI::App& command) {
  const std::string name = full_name(command);
  return roff_bold(name) + roff_literal(usage(command).substr(name.size())) + "\n";
}

// The paragraphs of the help behind its first line, which is the page's name. Lines that are indented by two spaces
// after a word, as in a table, stay lines.
std::string description(const CLI::App& command) {
  const std::string text = command.get_description();
  std::size_t start = text.find("\n\n");
  if (start == std::string::npos) return roff_text(text) + ".\n";
  std::string result;
  while (start != std::string::npos) {
    const std::size_t end = text.find("\n\n", start + 2);
    const std::string paragraph = text.substr(start + 2, end == std::string::npos ? end : end - start - 2);
    const bool is_table = paragraph.find("  ") != std::string::npos;
    result += (result.empty() ? "" : ".PP\n") + (is_table ? typed_line(paragraph) : roff_text(paragraph) + "\n");
    start = end;
  }
  return result;
}

std::string commands(const CLI::App& command) {
  std::string text;
  for (const CLI::App* below : commands_of(command))
    text += item(reference(page_name(*below), '1'), summary_of(*below));
  return text;
}

// What the machine decides is no default of a manual; the text says it in words.
std::string option_meaning(const CLI::Option& option) {
  const std::string& text = option.get_description();
  if (option.get_required()) return text + " (required)";
  const std::string value = option.get_default_str();
  const bool said = value.empty() || text.find("default:") != std::string::npos;
  return said ? text : text + " (default: " + value + ")";
}

std::string option_word(const CLI::Option& option) {
  if (option.get_positional()) return roff_italic(option.get_name());
  std::string names;
  for (const std::string& name : dashed_names(option)) names += (names.empty() ? "" : ", ") + roff_bold(name);
  const std::string value = value_name(option);
  return value.empty() ? names : names + " " + roff_italic(value);
}

std::string options(const CLI::App& command) {
  std::string text;
  for (const TitledOptions& group : option_groups(command)) {
    text += ".SS " + group.title + "\n";
    for (const CLI::Option* option : group.options) text += item(option_word(*option), option_meaning(*option));
  }
  return text;
}

std::string exit_codes() {
  std::string text;
  for (const ExitCode& code : kExitCodes) text += item(roff_bold(std::to_string(code.code)), code.meaning);
  return text;
}

std::string environment() {
  return item(roff_bold("ROUTING_") + roff_italic("KEY"),
              "sets a configuration key: ROUTING_TRAIN_STEPS is train.steps; above a file, below --set") +
         item(roff_bold("ROUTING_ISA"),
              "instructions of the kernels: generic, avx2, avx512, avx512_bf16 or amx; default: the best there are") +
         item(roff_bold("NO_COLOR"), "if it is set, nothing is printed in colour");
}

std::string files() {
  return item(roff_italic("RUN/config.toml"), "the resolved configuration of a run") +
         item(roff_italic("RUN/metrics.jsonl"), "its losses and measurements, an object per line") +
         item(roff_italic("RUN/checkpoints/step-N/model.safetensors"), "the weights after step N");
}

std::string see_also(const CLI::App& command) {
  std::vector<std::string> pages;
  for (const CLI::App* above = command.get_parent(); above != nullptr; above = above->get_parent()) {
    pages.insert(pages.begin(), reference(page_name(*above), '1'));
  }
  if (command.get_parent() == nullptr || command.get_option_no_throw("--set") != nullptr) {
    pages.push_back(reference(kConfigurationName, '5'));
  }
  return CLI::detail::join(pages, ",\n") + "\n";
}

void add_pages(const CLI::App& command, std::vector<ManPage>& pages) {
  pages.push_back(man_page(command));
  for (const CLI::App* below : commands_of(command)) add_pages(*below, pages);
}

std::string key_list() {
  const ExperimentConfig defaults;
  std::string text;
  std::string last_part;
  for (const auto& key : experiment_key_table()) {
    const std::string part = key.name.substr(0, key.name.find('.'));
    if (part != key.name && part != last_part) text += ".SS [" + part + "]\n";
    last_part = part;
    const std::string value = key.get(defaults);
    text += item(roff_bold(key.name), key.description + (value.empty() ? "" : " (default: " + value + ")"));
  }
  return text + item(roff_bold(kRoutingPresetKey), key_description(kRoutingPresetKey));
}

}  // namespace

ManPage man_page(const CLI::App& command) {
  ManPage page{.name = page_name(command)};
  const bool is_program = command.get_parent() == nullptr;
  page.text = title(page) + section("NAME", roff_literal(page.name) + " \\- " + roff_text(summary_of(command)) + "\n") +
              section("SYNOPSIS", synopsis(command)) + section("DESCRIPTION", description(command)) +
              section("COMMANDS", commands(command)) + section("OPTIONS", options(command)) +
              section("EXIT STATUS", exit_codes());
  if (is_program) page.text += section("ENVIRONMENT", environment()) + section("FILES", files());
  page.text +=
      section("EXAMPLES", typed_line(example_in(command.get_footer()))) + section("SEE ALSO", see_also(command));
  return page;
}

ManPage configuration_page() {
  ManPage page{.name = kConfigurationName, .section = '5'};
  page.text = title(page) + section("NAME", roff_literal(page.name) + " \\- configuration keys of routing\n") +
              section("DESCRIPTION",
                      roff_text("An experiment is a list of keys. Each may stand in a TOML file (--config FILE) under "
                                "the name of its\nsection, in the environment (ROUTING_TRAIN_STEPS) or on the line "
                                "(--set train.steps=1000). Later sources\nwin: defaults, preset, file, environment, "
                                "line. A file may name the preset that it changes: base = \"tiny-enwik8\".\n")) +
              section("KEYS", key_list()) +
              section("EXAMPLES", typed_line("routing presets --show tiny-enwik8 > mine.toml")) +
              section("SEE ALSO", reference("routing", '1') + ",\n" + reference("routing-train", '1') + ",\n" +
                                      reference("routing-presets", '1') + "\n");
  return page;
}

std::vector<ManPage> man_pages(const CLI::App& program) {
  std::vector<ManPage> pages;
  add_pages(program, pages);
  pages.push_back(configuration_page());
  return pages;
}

}  // namespace routing
