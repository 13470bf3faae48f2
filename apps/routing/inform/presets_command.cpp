#include "commands.h"
#include "routing/config/parameter_count.h"
#include "routing/config/presets.h"
#include "routing/config/resolve.h"
#include "routing/core/error.h"
#include "shell/options.h"
#include "shell/output.h"
#include "shell/text_table.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace routing {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct PresetsOptions {
  std::string part;
  std::string show;
  bool json = false;
};

std::vector<std::string> names_with(const std::string& part) {
  std::vector<std::string> names;
  for (const std::string& name : preset_names()) {
    if (name.find(part) != std::string::npos) names.push_back(name);
  }
  require<ConfigError>(!names.empty(), "presets: no name has '", part, "' in it; routing presets lists all");
  return names;
}

OrderedJson row_of(const std::string& name) {
  const ExperimentConfig config = resolve({.preset = name});
  const ParameterCount count = count_parameters(config);
  return {{"name", name},
          {"data_format", to_string(config.data.format)},
          {"layers", config.model.layers},
          {"width", config.model.width},
          {"parameters", count.total()},
          {"parameters_a_word", config.model.vocab_size == 0 ? count.a_word : 0},
          {"validity", validity_label(config)},
          {"summary", preset_summary(name)}};
}

// In a narrow terminal only what tells them apart; `routing info --preset NAME` has the rest.
constexpr std::size_t kWideTerminal = 140;

void print_table(const OrderedJson& rows) {
  const std::size_t width = output_width();
  const bool wide = width == 0 || width >= kWideTerminal;
  std::vector<TableColumn> columns{{.title = "name"}, {.title = "weights"}};
  if (wide) {
    for (const char* const title : {"data", "layers", "width", "validity"}) columns.push_back({.title = title});
  }
  columns.push_back({.title = "what it is", .shrinks = true});
  std::vector<std::vector<std::string>> table;
  for (const OrderedJson& row : rows) {
    const auto price = row["parameters_a_word"].get<std::int64_t>();
    const std::string weights = weights_text(row["parameters"].get<std::int64_t>());
    std::vector<std::string> cells{row["name"].get<std::string>(),
                                   price > 0 ? weights + " + " + std::to_string(price) + " per word" : weights};
    if (wide) {
      cells.insert(cells.end(), {row["data_format"].get<std::string>(), row["layers"].dump(), row["width"].dump(),
                                 row["validity"].get<std::string>()});
    }
    cells.push_back(row["summary"].get<std::string>());
    table.push_back(std::move(cells));
  }
  std::cout << text_table(columns, table, width);
}

int run(const PresetsOptions& options) {
  if (!options.show.empty()) {
    std::cout << preset_text(options.show);
    return kDone;
  }
  OrderedJson rows = OrderedJson::array();
  for (const std::string& name : names_with(options.part)) rows.push_back(row_of(name));
  if (options.json) {
    std::cout << rows.dump(2) << "\n";
  } else {
    print_table(rows);
  }
  return kDone;
}

}  // namespace

Command add_presets(CLI::App& program, const ProgramOptions& /*options*/) {
  const auto options = std::make_shared<PresetsOptions>();
  CLI::App* app = add_command(program, "presets",
                              "List the named experiments\n\n"
                              "All of them, or those with PART in their name. docs/presets.md says which row\n"
                              "of the paper each is.",
                              "routing presets cifar10");
  OptionGroup(*app, "Options").add({"PART", "part of the names to list"}, options->part, offers([] {
                                     return preset_names();
                                   }));
  OptionGroup output(*app, "Output");
  output.add({"--show PRESET", "print the file of one of them"}, options->show);
  output.flag(kJsonFlag, options->json);
  return {app, [options] { return run(*options); }};
}

}  // namespace routing
