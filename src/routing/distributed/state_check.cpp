#include "routing/distributed/state_check.h"

#include "routing/core/hash.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace routing {
namespace {

void add_to(XxHash64& hash, const at::Tensor& tensor) {
  const at::Tensor plain = tensor.detach().contiguous();
  hash.update({static_cast<const std::byte*>(plain.data_ptr()), plain.nbytes()});
}

// "layer3.attention.query_weight" is of "layer3", "embedding" of itself.
std::string part_of(const std::string& name) {
  return name.substr(0, name.find('.'));
}

struct PartHash {
  std::string part = {};  // "centroids of layer 3", or "weights of layer3"
  std::uint64_t hash = 0;
};
std::vector<PartHash> model_hashes(SequenceModel& model) {
  std::vector<PartHash> hashes;
  for (const SequenceModel::RoutedGroup& group : model.routed_groups()) {
    XxHash64 hash;
    for (const auto& buffer : group.centroids->named_buffers()) add_to(hash, buffer.value());
    hashes.push_back({"centroids of " + group.attention, hash.digest()});
  }
  std::map<std::string, XxHash64> weights;
  for (const auto& parameter : model.named_parameters()) add_to(weights[part_of(parameter.key())], parameter.value());
  for (const auto& [part, hash] : weights) hashes.push_back({"weights of " + part, hash.digest()});
  return hashes;
}

}  // namespace

void check_same_model(RankGroup& ranks, SequenceModel& model, std::int64_t step) {
  if (ranks.size() == 1) return;
  const std::vector<PartHash> own = model_hashes(model);
  const at::Tensor numbers = at::empty({static_cast<std::int64_t>(own.size())}, at::kLong);
  for (std::size_t i = 0; i < own.size(); ++i) {
    numbers.data_ptr<std::int64_t>()[i] = static_cast<std::int64_t>(own[i].hash);
  }
  const at::Tensor all = ranks.gather(numbers).contiguous();
  const auto* hash = all.data_ptr<std::int64_t>();
  const auto parts = static_cast<std::int64_t>(own.size());
  for (std::int64_t part = 0; part < parts; ++part) {
    for (std::int64_t rank = 1; rank < ranks.size(); ++rank) {
      require<DriftError>(hash[rank * parts + part] == hash[part], "step ", step, ": the ",
                          own[static_cast<std::size_t>(part)].part, " have hash ",
                          hexadecimal(static_cast<std::uint64_t>(hash[rank * parts + part])), " on rank ", rank,
                          ", but ", hexadecimal(static_cast<std::uint64_t>(hash[part])),
                          " on rank 0; go on from the last checkpoint with `resume`, with the same processors or ",
                          "one ROUTING_ISA for all ranks");
    }
  }
}

}  // namespace routing
