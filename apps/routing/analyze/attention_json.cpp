#include "analyze/attention_json.h"

#include <utility>

namespace routing {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const HeadReading& reading, const AttentionText& text) {
  Json reads = Json::array();
  for (const ReadToken& read : reading.reads) {
    reads.push_back({{"position", read.token}, {"token", label_of(text, read.token)}, {"weight", read.weight}});
  }
  Json object{{"layer", reading.layer}, {"head", reading.head}, {"pattern", reading.pattern}};
  if (reading.routed) object["clusters"] = reading.clusters;
  object["reads"] = std::move(reads);
  return object;
}

}  // namespace

Json readings_json(const std::vector<HeadReading>& readings, const AttentionText& text) {
  Json heads = Json::array();
  for (const HeadReading& reading : readings) heads.push_back(json_of(reading, text));
  return heads;
}

}  // namespace routing
