#include "commands.h"
#include "help/man_page.h"
#include "routing/config/words.h"
#include "routing/core/error.h"
#include "routing/core/files.h"
#include "shell/options.h"
#include "shell/usage_error.h"

#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace routing {
namespace {

struct ManOptions {
  std::string page = "routing";
  std::string out;
};

void write_all(const std::vector<ManPage>& pages, const std::filesystem::path& folder) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  require<FileError>(!failure, folder.string(), ": cannot be made: ", failure.message());
  for (const ManPage& page : pages) write_file_at_once(folder / page.file_name(), page.text);
}

std::vector<std::string> page_names(const CLI::App& program) {
  std::vector<std::string> names;
  for (const ManPage& page : man_pages(program)) names.push_back(page.name);
  return names;
}

int run(const ManOptions& options, const CLI::App& program) {
  const std::vector<ManPage> pages = man_pages(program);
  if (!options.out.empty()) {
    write_all(pages, options.out);
    return kDone;
  }
  require_word(options.page, "PAGE", page_names(program));
  for (const ManPage& page : pages) {
    if (page.name == options.page) std::cout << page.text;
  }
  return kDone;
}

}  // namespace

Command add_man(CLI::App& program, const ProgramOptions& /*options*/) {
  const auto options = std::make_shared<ManOptions>();
  CLI::App* app =
      add_command(program, "man",
                  "Print a page of the manual, for the program man\n\n"
                  "Pages say what --help says; routing-configuration lists all keys. cmake --install and the "
                  "Debian package put\nthem in place.",
                  "routing man routing-train | man -l -");
  OptionGroup(*app, "Options")
      .add({"PAGE", "of a command: routing-train, routing-analyze-curves"}, options->page,
           offers([&program] { return page_names(program); }));
  CLI::Option* const out =
      OptionGroup(*app, "Output").add({"--out DIR", "write all pages to this folder instead"}, options->out);
  return {app, [options, app, out, &program] {
            if (out->count() > 0 && app->count("PAGE") > 0) {
              throw UsageError("man: --out writes all pages, but one was named", "leave one of the two out");
            }
            return run(*options, program);
          }};
}

}  // namespace routing
