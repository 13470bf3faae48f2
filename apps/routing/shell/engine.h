// The door between the two halves of the program.
//
// Loading libtorch and the hundred libraries behind it takes longer than most answers. So the program itself knows none
// of them: it reads the command line, refuses what is wrong and runs what needs no tensors. All else is the engine,
// routing_engine.so, which is loaded when a command asks for it. Each half has its own copy of the rooms that both use;
// what keeps state for long work (threads, interrupts) is used by the engine alone.
#pragma once

#include "commands.h"

#include <string>

namespace routing {

struct AttentionOptions;
struct AuditOptions;
struct BenchOptions;
struct ConvertOptions;
struct DecodeOptions;
struct DistanceOptions;
struct DistributedOptions;
struct DoctorOptions;
struct EvalOptions;
struct GenerateArguments;
struct HeadAnalysisOptions;
struct HealthOptions;
struct InfoOptions;
struct JsdOptions;
struct LayersOptions;
struct LeakOptions;
struct LongOptions;
struct PatternsOptions;
struct QuickstartOptions;
struct ScalingOptions;
struct ServeOptions;
struct TableCommandOptions;
struct TrainBenchOptions;
struct TrainOptions;

// What a command does once its options are read and checked; returns the exit code.
template <class Options>
using RunCommand = int(const Options& options, const ProgramOptions& program);

RunCommand<QuickstartOptions> run_quickstart;
RunCommand<TrainOptions> run_train;
RunCommand<EvalOptions> run_eval;
RunCommand<GenerateArguments> run_generate;
RunCommand<ServeOptions> run_serve;
RunCommand<AuditOptions> run_audit;
RunCommand<ConvertOptions> run_convert;
RunCommand<PatternsOptions> run_analyze_patterns;
RunCommand<AttentionOptions> run_analyze_attention;
RunCommand<HealthOptions> run_analyze_health;
RunCommand<JsdOptions> run_analyze_jsd;
RunCommand<HeadAnalysisOptions> run_analyze_recall;
RunCommand<LeakOptions> run_analyze_leak;
RunCommand<DistanceOptions> run_analyze_distance;
RunCommand<TableCommandOptions> run_table_command;
RunCommand<BenchOptions> run_bench_attention;
RunCommand<TrainBenchOptions> run_bench_train;
RunCommand<ScalingOptions> run_bench_scaling;
RunCommand<LayersOptions> run_bench_layers;
RunCommand<DecodeOptions> run_bench_decode;
RunCommand<DistributedOptions> run_bench_distributed;
RunCommand<LongOptions> run_bench_long;
RunCommand<InfoOptions> run_info;
RunCommand<DoctorOptions> run_doctor;

struct Engine {
  std::string (*version)() = nullptr;  // of the program that it was built with
  void (*set_threads)(const ProgramOptions& program) = nullptr;
  RunCommand<QuickstartOptions>* quickstart = nullptr;
  RunCommand<TrainOptions>* train = nullptr;
  RunCommand<EvalOptions>* eval = nullptr;
  RunCommand<GenerateArguments>* generate = nullptr;
  RunCommand<ServeOptions>* serve = nullptr;
  RunCommand<AuditOptions>* audit = nullptr;
  RunCommand<ConvertOptions>* convert = nullptr;
  RunCommand<PatternsOptions>* analyze_patterns = nullptr;
  RunCommand<AttentionOptions>* analyze_attention = nullptr;
  RunCommand<HealthOptions>* analyze_health = nullptr;
  RunCommand<JsdOptions>* analyze_jsd = nullptr;
  RunCommand<HeadAnalysisOptions>* analyze_recall = nullptr;
  RunCommand<LeakOptions>* analyze_leak = nullptr;
  RunCommand<DistanceOptions>* analyze_distance = nullptr;
  RunCommand<TableCommandOptions>* table = nullptr;
  RunCommand<BenchOptions>* bench_attention = nullptr;
  RunCommand<TrainBenchOptions>* bench_train = nullptr;
  RunCommand<ScalingOptions>* bench_scaling = nullptr;
  RunCommand<LayersOptions>* bench_layers = nullptr;
  RunCommand<DecodeOptions>* bench_decode = nullptr;
  RunCommand<DistributedOptions>* bench_distributed = nullptr;
  RunCommand<LongOptions>* bench_long = nullptr;
  RunCommand<InfoOptions>* info = nullptr;
  RunCommand<DoctorOptions>* doctor = nullptr;
};

// The engine, its threads set as the options of the program say. Throws a FileError if it cannot be loaded.
const Engine& engine(const ProgramOptions& program);

}  // namespace routing

// The only symbol that the engine exports.
extern "C" const routing::Engine* routing_engine();
