#include "inputs/run_files.h"

#include "routing/core/error.h"
#include "routing/data/prepared.h"
#include "routing/training/run_directory.h"

#include <system_error>

namespace routing {

namespace fs = std::filesystem;

fs::path model_file(const fs::path& run, const std::string& checkpoint) {
  std::error_code ignored;
  require<FileError>(run.extension() != ".zip" || !fs::is_regular_file(run, ignored), run.string(),
                     ": is an archive; unpack it (unzip ", run.string(), ") and give the folder that is in it");
  if (fs::is_regular_file(run, ignored)) return run;
  if (fs::is_regular_file(run / "model.safetensors", ignored)) return run / "model.safetensors";
  return RunDirectory(run).find_checkpoint(checkpoint).model();
}

fs::path kept_tokenizer(const fs::path& model, TokenKind kind) {
  const fs::path beside = fs::absolute(model).parent_path();
  for (const fs::path& folder : {beside, beside.parent_path().parent_path()}) {
    fs::path file = tokenizer_file(folder, kind);
    std::error_code ignored;
    if (!file.empty() && fs::is_regular_file(file, ignored)) return file;
  }
  return {};
}

}  // namespace routing
