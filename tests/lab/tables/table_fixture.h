// A table of small models on a small text, for tests of the engine and of what it writes.
#pragma once

#include "lab/tables/table_output.h"
#include "lab/tables/table_run.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace routing {

inline std::vector<std::string> with(std::vector<std::string> settings, const std::vector<std::string>& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

// A literature row, a local row, two routed rows of different windows.
inline TableSpec small_table() {
  const std::vector<std::string> small{"model.layers=1",           "attention.content_layers=all",
                                       "model.width=16",           "model.feedforward_width=32",
                                       "attention.heads=2",        "local.window=8",
                                       "routing.clusters=4",       "attention.content_heads=1",
                                       "train.sequence_length=32", "train.batch_size=2",
                                       "train.log_every=1",        "train.eval_every=0",
                                       "train.eval_tokens=64",     "train.warmup_steps=2",
                                       "train.precision=fp32",     "train.checkpoint_every=2"};
  const auto recipe = [&](const std::vector<std::string>& more) {
    return RowRecipe{.preset = "tiny-enwik8", .settings = with(small, more)};
  };
  TableSpec spec{.name = "small",
                 .title = "Small & <made up>",
                 .source = "no paper",
                 .metric = {.key = "bits_per_byte", .name = "bits/byte", .digits = 4, .paper_digits = 2},
                 .columns = {"window"},
                 .notes = {"A note."},
                 .baseline = "local",
                 .data = "any file",
                 .tiny_test_tokens = 100,
                 .tiny_steps = 4};
  spec.rows = {
      {.id = "quoted", .name = "Others, \"quoted\"", .columns = {"-"}, .paper_metric = 1.5, .is_literature = true},
      {.id = "local",
       .name = "Local",
       .columns = {"8"},
       .paper_metric = 1.25,
       .paper_steps_per_second = 3.5,
       .tiny = recipe({"attention.content=local"}),
       .paper = recipe({"attention.content=local"})},
      {.id = "routing-w4",
       .name = "Routing",
       .columns = {"4"},
       .paper_metric = 1.0,
       .is_routed = true,
       .tiny = recipe({"routing.window=4"}),
       .paper = recipe({"routing.window=4"})},
      {.id = "routing-w8",
       .name = "Routing",
       .columns = {"8"},
       .is_routed = true,
       .tiny = recipe({"routing.window=8"}),
       .paper = recipe({"routing.window=8"})},
  };
  return spec;
}

class SmallTable : public testing::Test {
 protected:
  SmallTable() {
    std::ofstream text(folder_ / "text");
    for (int i = 0; i < 1000; ++i) text << "line " << i * i % 97 << " of the text\n";
  }

  TableOptions options(const std::string& out = "table") {
    TableOptions options{
        .folder = folder_ / out, .data = (folder_ / "text").string(), .seeds = {1, 2}, .version = "test"};
    options.observer.notes = [this](const std::string& line) { notes_ += line + "\n"; };
    options.observer.training.step = [this](const StepReport&) { ++steps_; };
    return options;
  }

  std::vector<RowResult> results(const std::string& out = "table") const {
    return TableFolder(folder_ / out).read_results(spec_.name);
  }

  TemporaryFolder folder_;
  TableSpec spec_ = small_table();
  std::string notes_;
  int steps_ = 0;
};

}  // namespace routing
