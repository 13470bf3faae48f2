#include "analyze/analyze_options.h"
#include "commands.h"
#include "shell/engine.h"
#include "shell/options.h"

#include <memory>

namespace routing {

Command add_analyze_distance(CLI::App& analyze, const ProgramOptions& program) {
  const auto options = std::make_shared<DistanceOptions>();
  CLI::App* app = add_command(
      analyze, "distance",
      "Compare how far back models of the recall task remember\n\n"
      "Right answers by the distance of the fact, and the keys that a content head reads for a query. RUN is a run\n"
      "trained with data.format=recall, such as the preset tiny-recall.",
      "routing analyze distance runs/recall-full runs/recall-local --out distance.png");
  OptionGroup models(*app, "Models");
  models.add({"RUN", "folders of runs, checkpoints or model files"}, options->runs)->required();
  models.add({"--checkpoint WHICH", "best, last or a step", {"best", "last"}}, options->checkpoint);
  OptionGroup data(*app, "Data");
  data.add({"--split TEXT", "part of the endless data: train, valid or test"}, options->split, a_split());
  data.add({"--sequences N", "sequences to score"}, options->sequences, whole_number(1));
  data.add({"--sequence-length N", "tokens of a sequence; 0: as trained"}, options->sequence_length, whole_number(0));
  OptionGroup output(*app, "Output");
  output.add(kFigureOption, options->paths);
  output.flag({"--json", "print one JSON object per model"}, options->json);
  return {app, [options, &program] { return engine(program).analyze_distance(*options, program); }};
}

}  // namespace routing
