#include "routing/config/routing_pattern.h"

namespace routing {

std::string_view to_string(RoutingSelection selection) {
  switch (selection) {
    case RoutingSelection::balanced:
      return "balanced";
    case RoutingSelection::nearest:
      return "nearest";
    case RoutingSelection::threshold:
      return "threshold";
  }
  return "";
}

std::string_view to_string(RoutingBalance balance) {
  return balance == RoutingBalance::threshold ? "threshold" : "none";
}

std::string_view to_string(CentroidUpdate update) {
  return update == CentroidUpdate::mean ? "mean" : "sum";
}

std::string_view to_string(UpdateFrom from) {
  switch (from) {
    case UpdateFrom::argmax:
      return "argmax";
    case UpdateFrom::nearest:
      return "nearest";
    case UpdateFrom::members:
      return "members";
    case UpdateFrom::none:
      return "none";
  }
  return "";
}

std::string_view to_string(CentroidInit init) {
  return init == CentroidInit::gaussian ? "gaussian" : "first_batch_kmeans";
}

std::string_view to_string(SeparateUpdate update) {
  return update == SeparateUpdate::pooled ? "pooled" : "sequential";
}

}  // namespace routing
