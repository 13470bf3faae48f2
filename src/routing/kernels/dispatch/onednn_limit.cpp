#include "routing/kernels/dispatch/onednn_limit.h"

#include "routing/kernels/dispatch/cpu_features.h"

#include <cstdlib>
#include <oneapi/dnnl/dnnl.h>

namespace routing {
namespace {

bool palettes_are_hidden() {
  return cpu_features().amx_tile && !cpu_features().amx_palette;
}

bool user_has_a_limit() {
  return std::getenv("DNNL_MAX_CPU_ISA") != nullptr || std::getenv("ONEDNN_MAX_CPU_ISA") != nullptr;
}

}  // namespace

void limit_onednn() {
  // Refused where oneDNN is in use already; onednn_would_crash_on_tiles() then says so.
  static const bool once = palettes_are_hidden() && !user_has_a_limit() &&
                           dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx512_core_bf16) == dnnl_success;
  static_cast<void>(once);
}

bool onednn_would_crash_on_tiles() {
  limit_onednn();
  constexpr auto kTiles = static_cast<unsigned>(dnnl_cpu_isa_avx512_core_amx);
  return palettes_are_hidden() && (static_cast<unsigned>(dnnl_get_effective_cpu_isa()) & kTiles) == kTiles;
}

}  // namespace routing
