#include "analyze/analyze_options.h"

#include "shell/options.h"

namespace routing {

void add_head_analysis_options(CLI::App& app, HeadAnalysisOptions& options) {
  OptionGroup model(app, "Model");
  model.add({"RUN", "whose heads to look at"}, options.model.run)->required();
  add_model_options(app, options.model);
  add_data_options(app, options.model);
  OptionGroup data(app, "Data");
  data.add({"--sequences N", "how many, spread evenly over the part"}, options.sequences, whole_number(1));
  data.add({"--sequence-length N", "tokens of a sequence; default: as trained"}, options.sequence_length,
           whole_number(2));
  data.add({"--queries N", "sampled in each sequence, the same for all heads; 0: all"}, options.queries,
           whole_number(0));
  data.add({"--seed N", "fixes what is drawn"}, options.seed, whole_number(0));
  OptionGroup output(app, "Output");
  output.add(kFigureOption, options.paths);
  output.flag(kJsonFlag, options.json);
}

}  // namespace routing
