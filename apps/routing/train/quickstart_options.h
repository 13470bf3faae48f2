// What the arguments of `routing quickstart` say.
#pragma once

#include "routing/config/resolve.h"

#include <algorithm>
#include <string>
#include <vector>

namespace routing {

inline constexpr const char* kDefaultCorpus = "/usr/share/dictd/gcide.dict.dz";

struct QuickstartOptions {
  std::string out = "runs/quickstart";
  std::string data = kDefaultCorpus;
  double minutes = 3.0;
  std::vector<std::string> settings;
  bool any_given = false;  // of --data, --minutes, --set
  bool json = false;

  // Does --set name this key?
  bool sets(const std::string& key) const {
    return std::any_of(settings.begin(), settings.end(),
                       [&](const std::string& setting) { return setting.rfind(key + "=", 0) == 0; });
  }
};

// A preset with what the user changed.
ConfigSources quickstart_sources(const std::string& preset, const QuickstartOptions& options);

}  // namespace routing
