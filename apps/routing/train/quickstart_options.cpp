#include "train/quickstart_options.h"

#include <filesystem>

namespace routing {

ConfigSources quickstart_sources(const std::string& preset, const QuickstartOptions& options) {
  ConfigSources sources{.preset = preset, .environment = routing_environment(), .settings = options.settings};
  sources.settings.push_back("data.path=" + std::filesystem::absolute(options.data).string());
  return sources;
}

}  // namespace routing
