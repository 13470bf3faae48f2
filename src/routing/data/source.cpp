#include "routing/data/source.h"

namespace routing {

const SourcePart* SourceFacts::part(std::string_view name) const {
  for (const SourcePart& candidate : parts) {
    if (candidate.name == name) return &candidate;
  }
  return nullptr;
}

}  // namespace routing
