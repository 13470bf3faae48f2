// The manual, for the program man: made of the texts of the help, so that the two cannot disagree. Knows no torch.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace routing {

struct ManPage {
  std::string name = {};  // routing-analyze-curves
  char section = '1';     // 1 for commands, 5 for files
  std::string text = {};  // in the language of man(7)

  std::string file_name() const { return name + "." + section; }
};

// Of the program or of a command.
ManPage man_page(const CLI::App& command);
// Every configuration key with its default: routing-configuration(5).
ManPage configuration_page();
// All there are: the program first, then its commands and what is below them, then the configuration.
std::vector<ManPage> man_pages(const CLI::App& program);

}  // namespace routing
