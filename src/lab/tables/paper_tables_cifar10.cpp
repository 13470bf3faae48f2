#include "lab/tables/paper_tables.h"

#include <array>
#include <string>

namespace routing {
namespace {

struct Printed {
  int heads = 0;
  int layers = 0;
  int window = 0;
  double bits_per_dim = 0.0;
  double steps_per_second = 0.0;
};

// In the order of the paper's table.
constexpr std::array<Printed, 24> kRoutingRows{{
    {2, 2, 512, 3.005, 7.968},  {4, 2, 512, 2.986, 7.409},   {8, 2, 512, 2.992, 6.682},   {2, 4, 512, 2.995, 7.379},
    {4, 4, 512, 2.975, 6.492},  {8, 4, 512, 2.991, 5.385},   {2, 8, 512, 2.995, 6.442},   {4, 8, 512, 2.971, 5.140},
    {8, 8, 512, 3.190, 3.897},  {2, 12, 512, 2.978, 5.685},  {4, 12, 512, 2.994, 4.349},  {8, 12, 512, 3.400, 3.062},
    {2, 2, 1024, 2.975, 7.344}, {4, 2, 1024, 2.950, 6.440},  {8, 2, 1024, 2.982, 5.192},  {2, 4, 1024, 2.990, 6.389},
    {4, 4, 1024, 2.958, 5.112}, {8, 4, 1024, 3.003, 3.674},  {2, 8, 1024, 2.991, 5.057},  {4, 8, 1024, 2.983, 3.597},
    {8, 8, 1024, 3.131, 2.329}, {2, 12, 1024, 2.973, 4.151}, {4, 12, 1024, 3.005, 2.788}, {8, 12, 1024, 3.291, 1.711},
}};

// Half of the paper's depth and a quarter of its windows: presets/table-cifar10.toml.
constexpr int kDepthRatio = 2;
constexpr int kWindowRatio = 4;

std::string top(int layers) {
  return "attention.content_layers=top " + std::to_string(layers);
}

TableRow routing_row(const Printed& printed) {
  const std::string heads = std::to_string(printed.heads);
  const std::string layers = std::to_string(printed.layers);
  const std::string window = std::to_string(printed.window);
  const std::string content_heads = "attention.content_heads=" + heads;
  TableRow row{.id = "routing-h" + heads + "-l" + layers + "-w" + window,
               .name = "Routing Transformer",
               .columns = {heads, layers, window},
               .paper_metric = printed.bits_per_dim,
               .paper_steps_per_second = printed.steps_per_second,
               .is_routed = true};
  row.tiny = {.preset = "table-cifar10",
              .settings = {"attention.content=routing", content_heads, top(printed.layers / kDepthRatio),
                           "routing.window=" + std::to_string(printed.window / kWindowRatio)}};
  row.paper = {.preset = "cifar10-paper", .settings = {content_heads, top(printed.layers), "routing.window=" + window}};
  return row;
}

}  // namespace

TableSpec cifar10_ablation() {
  TableSpec spec{.name = "cifar10-ablation",
                 .title = "CIFAR-10: heads, layers and windows of routing",
                 .source = "Table 1 (tab:cifar10-ablation)",
                 .metric = {.key = "bits_per_dim", .name = "bits/dim", .digits = 3},
                 .columns = {"routing heads", "routing layers", "window"},
                 .baseline = "local",
                 .data = "the folder of CIFAR-10's binary files",
                 .tiny_test_tokens = 256 * 768};
  spec.notes = {
      "Columns are the paper's. At tiny scale images are 16x16 (768 values), the model has 6 of 12 layers, of which "
      "half "
      "as many route, and windows are a quarter: presets/table-cifar10.toml.",
      "The paper's steps/s are of a TPUv3; ours are of this machine, each row alone, not in turns."};
  spec.rows.push_back(
      {.id = "full",
       .name = "Transformer",
       .columns = {"0", "0", "3072"},
       .paper_metric = 2.983,
       .paper_steps_per_second = 5.608,
       .tiny = {.preset = "table-cifar10", .settings = {"attention.content=full", "attention.content_heads=8"}},
       .paper = {.preset = "cifar10-full"}});
  spec.rows.push_back({.id = "local",
                       .name = "Local Transformer",
                       .columns = {"0", "0", "512"},
                       .paper_metric = 3.009,
                       .paper_steps_per_second = 9.023,
                       .tiny = {.preset = "table-cifar10"},
                       .paper = {.preset = "cifar10-local"}});
  spec.rows.push_back({.id = "random",
                       .name = "Random Transformer",
                       .columns = {"4 (random)", "8 (random)", "512"},
                       .paper_metric = 3.076,
                       .paper_steps_per_second = 5.448,
                       .tiny = {.preset = "table-cifar10", .settings = {"attention.content=random", top(4)}},
                       .paper = {.preset = "cifar10-random"}});
  for (const Printed& printed : kRoutingRows) spec.rows.push_back(routing_row(printed));
  return spec;
}

}  // namespace routing
