#include "inputs/run_data_options.h"

#include "shell/options.h"

namespace routing {

void add_model_options(CLI::App& app, RunDataOptions& options) {
  OptionGroup model(app, "Model");
  model.add(kCheckpointOption, options.checkpoint);
  model.add(kPrecisionOption, options.precision);
}

void add_data_options(CLI::App& app, RunDataOptions& options) {
  OptionGroup data(app, "Data");
  data.add_paths(kDataOption, options.data);
  data.add(kVocabularyOption, options.vocabulary);
  data.add(kSplitOption, options.split, a_split());
}

}  // namespace routing
