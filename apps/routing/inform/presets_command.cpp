#include "commands.h"
#include "routing/config/parameter_count.h"
#include "routing/config/presets.h"
#include "routing/config/resolve.h"
#include "routing/core/error.h"
#include "shell/options.h"
#include "shell/output.h"

#include <nlohmann/json.hpp>

#include <algorithm>
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

std::vector<std::string> cells_of(const OrderedJson& row) {
  const auto price = row["parameters_a_word"].get<std::int64_t>();
  const std::string weights = weights_text(row["parameters"].get<std::int64_t>());
  return {row["name"].get<std::string>(),
          row["data_format"].get<std::string>(),
          std::to_string(row["layers"].get<std::int64_t>()),
          std::to_string(row["width"].get<std::int64_t>()),
          price > 0 ? weights + " + " + std::to_string(price) + " per word" : weights,
          row["validity"].get<std::string>(),
          row["summary"].get<std::string>()};
}

void print_table(const OrderedJson& rows) {
  std::vector<std::vector<std::string>> table{{"name", "data", "layers", "width", "weights", "validity", "what it is"}};
  for (const OrderedJson& row : rows) table.push_back(cells_of(row));
  std::vector<std::size_t> widths(table[0].size(), 0);
  for (const auto& cells : table) {
    for (std::size_t column = 0; column < cells.size(); ++column) {
      widths[column] = std::max(widths[column], cells[column].size());
    }
  }
  for (const auto& cells : table) {
    std::string line;
    for (std::size_t column = 0; column + 1 < cells.size(); ++column) {
      line += cells[column] + std::string(widths[column] + 2 - cells[column].size(), ' ');
    }
    std::cout << line << cells.back() << "\n";
  }
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
  OptionGroup(*app, "Options").add({"PART", "part of the names to list"}, options->part);
  OptionGroup output(*app, "Output");
  output.add({"--show NAME", "print the file of one of them"}, options->show);
  output.flag(kJsonFlag, options->json);
  return {app, [options] { return run(*options); }};
}

}  // namespace routing
