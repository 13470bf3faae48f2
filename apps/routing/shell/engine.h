// The door between the two halves of the program.
//
// Loading libtorch and the libraries behind it takes longer than most answers. So the program itself knows none of
// them: it reads the command line, refuses what is wrong and runs what needs no tensors. All else is the engine, a
// library that is loaded when a command asks for it.
#pragma once

#include "commands.h"

namespace routing {

struct TrainOptions;

// What a command does once its options are read and checked; returns the exit code.
template <class Options>
using RunCommand = int(const Options& options, const ProgramOptions& program);

RunCommand<TrainOptions> run_train;

struct Engine {
  void (*set_threads)(const ProgramOptions& program) = nullptr;
  RunCommand<TrainOptions>* train = nullptr;
};

// The engine, its threads set as the options of the program say.
const Engine& engine(const ProgramOptions& program);

}  // namespace routing
