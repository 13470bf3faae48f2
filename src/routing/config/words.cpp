#include "routing/config/words.h"

#include "routing/core/error.h"
#include "routing/core/nearest_name.h"

#include <algorithm>

namespace routing {

void require_word(std::string_view word, std::string_view what, const std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), word) != names.end()) return;
  std::string known;
  for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
  const std::string guess = did_you_mean(word, names);
  throw ConfigError(std::string(what) + ": '" + std::string(word) + "' is not known; choose one of " + known +
                    (guess.empty() ? "" : " (" + guess + ")"));
}

}  // namespace routing
