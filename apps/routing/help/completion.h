// What may come next on a command line, for the Tab key of shells.
//
// The scripts of the shells (shells/) know nothing of the program: they hand over the
// words, `routing complete train --pre`, and show the answer. So they are never out of date. Knows no torch.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace routing {

struct Completion {
  std::string word;         // as a whole: also what is typed already
  std::string description;  // one line, or nothing
};

// What the shell adds by itself.
enum class ShellPaths { none, files, folders };

struct Completions {
  std::vector<Completion> words = {};
  ShellPaths paths = ShellPaths::none;
};

// `words` are those behind the program's name; the last is being typed and may be empty. A word that ends in one of
// "=/.," is only a beginning: no space follows it.
Completions complete(const CLI::App& program, const std::vector<std::string>& words);

// A line per word, "word<Tab>description", and a last one for paths: ":none", ":files" or ":folders". Where only a part
// of the word is a path, it begins behind the last "=".
std::string to_text(const Completions& completions);

}  // namespace routing
