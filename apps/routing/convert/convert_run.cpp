#include "convert/convert_options.h"
#include "inputs/run_files.h"
#include "lab/runs/model_export.h"
#include "routing/config/keys.h"
#include "routing/config/resolve.h"
#include "routing/config/toml.h"
#include "routing/core/clock.h"
#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/data/prepared.h"
#include "routing/interchange/authors_checkpoint.h"
#include "routing/interchange/pickle/torch_archive.h"
#include "routing/interchange/public_model.h"
#include "routing/model/weights.h"
#include "routing/storage/safetensors_metadata.h"
#include "routing/training/progress.h"
#include "shell/engine.h"
#include "shell/json_text.h"
#include "shell/output.h"
#include "version.h"

#include <iostream>
#include <system_error>
#include <unistd.h>

namespace routing {
namespace {

namespace fs = std::filesystem;

// A model that came in, and what to say of it.
struct Converted {
  std::shared_ptr<SequenceModel> model;
  ExperimentConfig config;
  std::string origin;  // "a checkpoint of TensorFlow"
  std::optional<std::int64_t> step = std::nullopt;
  std::vector<std::string> skipped = {};
  std::vector<std::string> folded = {};
};

enum class Format { tensorflow, pytorch };

bool is_tensorflow(const fs::path& source) {
  std::error_code ignored;
  if (fs::is_directory(source, ignored)) return true;
  return source.extension() == ".index" || fs::exists(source.string() + ".index", ignored);
}

// A run, a checkpoint or an export of this program, which people point to when they want it written for others.
bool is_ours(const fs::path& source) {
  std::error_code ignored;
  return source.extension() == ".safetensors" || fs::exists(source / "config.toml", ignored) ||
         fs::exists(source / "model.safetensors", ignored);
}

Format format_of(const ConvertOptions& options) {
  require<ConfigError>(!is_ours(options.source), options.source,
                       ": is a model of this program already; --to tensorflow writes it for the authors' code");
  if (options.from == "pytorch") return Format::pytorch;
  if (options.from == "tensorflow" || is_tensorflow(options.source)) return Format::tensorflow;
  std::error_code ignored;
  require<FileError>(fs::exists(options.source, ignored), options.source, ": neither it nor ", options.source,
                     ".index is there; give a file of torch.save or what stands before .index");
  return Format::pytorch;
}

Converted from_tensorflow(const ConvertOptions& options) {
  require<ConfigError>(options.arguments.empty() && options.arguments_file.empty() && options.entry.empty(),
                       "--arg, --args and --entry are for files of torch.save, but ", options.source,
                       " is a checkpoint of TensorFlow; its configuration comes from --preset, --config and --set");
  require<ConfigError>(!options.preset.empty() || !options.config.empty(),
                       "a checkpoint of TensorFlow holds no configuration; give the one it was trained with, such as "
                       "--preset pg19-code, or --preset enwik8-code with --set");
  const ExperimentConfig config = resolve({.preset = options.preset,
                                           .file = options.config,
                                           .environment = routing_environment(),
                                           .settings = options.settings});
  const AuthorsModel read = read_authors_checkpoint(bundle_prefix(options.source), config);
  return {.model = read.model.ptr(),
          .config = config,
          .origin = "a checkpoint of the authors' TensorFlow code",
          .step = read.step,
          .skipped = read.skipped,
          .folded = read.folded};
}

std::string argument_text(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return "None";
  return value.dump();
}

GivenArguments given_arguments(const ConvertOptions& options) {
  GivenArguments given;
  if (!options.arguments_file.empty()) {
    const nlohmann::json object = nlohmann::json::parse(read_file(options.arguments_file), nullptr, false);
    require<ConfigError>(object.is_object(), options.arguments_file,
                         R"(: is not a JSON object; write {"causal": true, "local_attn_window_size": 256})");
    for (const auto& [name, value] : object.items()) given[name] = argument_text(value);
  }
  for (const std::string& argument : options.arguments) {
    const std::size_t equals = argument.find('=');
    require<ConfigError>(equals != std::string::npos && equals > 0, "--arg ", argument,
                         ": is not NAME=VALUE, such as causal=true");
    given[argument.substr(0, equals)] = argument.substr(equals + 1);
  }
  return given;
}

Converted from_pytorch(const ConvertOptions& options) {
  require<ConfigError>(options.preset.empty() && options.config.empty(),
                       "--preset and --config are for checkpoints of TensorFlow; the configuration of a "
                       "RoutingTransformerLM follows from its tensors and --arg");
  const PublicModel read =
      read_public_model(read_torch_archive(options.source, options.entry), given_arguments(options), options.source);
  ExperimentConfig config = read.model->config();
  for (const std::string& setting : options.settings) {
    const std::size_t equals = setting.find('=');
    const std::string key = setting.substr(0, equals);
    const bool free =
        key == "name" || key.starts_with("data.") || key.starts_with("train.") || key.starts_with("eval.");
    require<ConfigError>(equals != std::string::npos && free, "--set ", setting,
                         ": only name, data., train. and eval. are free; what the model computes is in its tensors");
    set_key(config, key, setting.substr(equals + 1));
  }
  validate(config);
  return {.model = read.model.ptr(),
          .config = config,
          .origin = "a RoutingTransformerLM of lucidrains' routing-transformer",
          .skipped = read.skipped};
}

std::string card_of(const Converted& converted, const std::string& title) {
  const std::string validity = validity_label(converted.config);
  std::string text =
      "# " + title + "\n\nA Routing Transformer, converted by `routing convert` from " + converted.origin;
  if (converted.step) text += ", step " + std::to_string(*converted.step);
  text += ".\n\n" + std::to_string(converted.config.model.layers) + " layers of width " +
          std::to_string(converted.config.model.width) + ", " +
          short_count(static_cast<double>(converted.model->num_parameters())) + " weights. Validity: " + validity +
          " (`routing audit .` checks it).\n\n    routing info .\n    routing eval . --data PATH --split test\n"
          "    sha256sum -c SHA256SUMS\n\n"
          "There is no state of an optimiser. This card states no licence: that of the weights is whoever trained "
          "them.\n";
  return text;
}

class TemporaryModel {
 public:
  explicit TemporaryModel(const fs::path& out) : folder_(out.string() + ".converting-" + std::to_string(::getpid())) {
    fs::create_directories(folder_);
  }
  ~TemporaryModel() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  TemporaryModel(const TemporaryModel&) = delete;
  TemporaryModel& operator=(const TemporaryModel&) = delete;
  fs::path file() const { return folder_ / "model.safetensors"; }

 private:
  fs::path folder_;
};

std::vector<ExportedFile> write_folder(const Converted& converted, const ConvertOptions& options) {
  const fs::path out = tidy_path(options.out);
  const TemporaryModel temporary(out);
  const bool bytes = converted.config.data.tokens == TokenKind::bytes;
  save_model(temporary.file(), *converted.model,
             {.version = program_version(), .tokenizer_hash = bytes ? DataFacts().tokenizer_hash : std::string()});
  if (!options.settings.empty()) set_safetensors_metadata(temporary.file(), "config", to_toml(converted.config));
  return export_model({.model = read_model_header(temporary.file())}, card_of(converted, out.stem().string()),
                      {.path = out, .replace = options.force});
}

void print_list(const char* title, const std::vector<std::string>& names) {
  if (names.empty()) return;
  constexpr std::size_t kShown = 8;
  std::cout << title << names.size() << ":";
  for (std::size_t index = 0; index < names.size() && index < kShown; ++index) std::cout << "\n    " << names[index];
  if (names.size() > kShown) std::cout << "\n    … (--json lists them all)";
  std::cout << "\n";
}

void print_converted(const Converted& converted, const ConvertOptions& options,
                     const std::vector<ExportedFile>& files) {
  const std::string validity = validity_label(converted.config);
  if (options.json) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const ExportedFile& file : files) all.push_back({{"name", file.name}, {"bytes", file.bytes}});
    nlohmann::ordered_json report{{"source", options.source},   {"origin", converted.origin},
                                  {"model", options.out},       {"parameters", converted.model->num_parameters()},
                                  {"validity", validity},       {"skipped", converted.skipped},
                                  {"folded", converted.folded}, {"files", all}};
    if (converted.step) report["step"] = *converted.step;
    std::cout << json_text(report) << "\n";
    return;
  }
  std::cout << options.out << "\n  from " << converted.origin;
  if (converted.step) std::cout << ", step " << *converted.step;
  std::cout << "\n  " << converted.config.model.layers << " layers of width " << converted.config.model.width << ", "
            << short_count(static_cast<double>(converted.model->num_parameters())) << " weights, " << validity << "\n";
  print_list("  folded into the next layer, ", converted.folded);
  print_list("  no weights, skipped, ", converted.skipped);
  for (const ExportedFile& file : files) std::cout << "  " << file.name << "   " << file.bytes << " bytes\n";
}

int to_tensorflow(const ConvertOptions& options) {
  const fs::path model = model_file(options.source, options.checkpoint);
  const fs::path prefix = options.out;
  std::error_code ignored;
  require<ConfigError>(options.force || !fs::exists(prefix.string() + ".index", ignored), prefix.string(),
                       ".index: is there already; write over it with `replace`, or choose another `export`");
  const Transformer loaded = load_model(model);
  write_authors_checkpoint(prefix, *loaded);
  const std::vector<std::string> written{prefix.string() + ".data-00000-of-00001", prefix.string() + ".index"};
  if (options.json) {
    std::cout << json_text({{"source", model.string()}, {"files", written}}) << "\n";
    return kDone;
  }
  for (const std::string& file : written) std::cout << file << "   " << fs::file_size(file) << " bytes\n";
  return kDone;
}

}  // namespace

int run_convert(const ConvertOptions& options, const ProgramOptions& /*program*/) {
  if (options.to == "tensorflow") return to_tensorflow(options);
  const Converted converted =
      format_of(options) == Format::tensorflow ? from_tensorflow(options) : from_pytorch(options);
  print_converted(converted, options, write_folder(converted, options));
  return kDone;
}

}  // namespace routing
