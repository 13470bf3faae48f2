#include "inform/system_facts.h"

#include "routing/core/memory.h"
#include "routing/kernels/dispatch/onednn_limit.h"

#include <ATen/ATen.h>
#include <ATen/Version.h>
#include <torch/version.h>

#include <algorithm>
#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.hpp>
#include <oneapi/dnnl/dnnl_debug.h>
#include <string_view>

namespace routing {
namespace {

// A function of a library that is in this process anyway; null if none has it. Linking against OpenBLAS instead would
// tie the program to it, and any other BLAS may stand behind libtorch.
template <class Function>
Function* loaded_function(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

BlasThreading openblas_threading(int answer) {
  switch (answer) {
    case 0:
      return BlasThreading::sequential;
    case 1:
      return BlasThreading::pthread;
    case 2:
      return BlasThreading::openmp;
    default:
      return BlasThreading::unknown;
  }
}

}  // namespace

BlasFacts blas_facts() {
  BlasFacts facts;
  Dl_info where{};
  auto* const core = loaded_function<const char*()>("openblas_get_corename");
  const auto* const product = reinterpret_cast<const void*>(loaded_function<void()>("sgemm_"));
  // Debian's libblas.so.3 of OpenBLAS only forwards to libopenblas: name the one that works.
  const void* const symbol = core != nullptr ? reinterpret_cast<const void*>(core) : product;
  if (symbol != nullptr && dladdr(symbol, &where) != 0 && where.dli_fname != nullptr) facts.library = where.dli_fname;
  if (core != nullptr) facts.core = core();
  if (auto* const threading = loaded_function<int()>("openblas_get_parallel"); threading != nullptr) {
    facts.threading = openblas_threading(threading());
  }
  return facts;
}

MemoryFacts memory_facts() {
  return {.total_bytes = std::max<std::int64_t>(0, total_memory()),
          .available_bytes = std::max<std::int64_t>(0, available_memory())};
}

std::string libtorch_version() {
  return TORCH_VERSION;
}

std::string libtorch_cpu_capability() {
  // The only place where 1.13 tells it to programs.
  constexpr std::string_view kLabel = "CPU capability usage: ";
  const std::string config = at::show_config();
  const std::size_t label = config.find(kLabel);
  if (label == std::string::npos) return "unknown";
  const std::size_t begin = label + kLabel.size();
  return config.substr(begin, config.find('\n', begin) - begin);
}

std::string onednn_version() {
  const dnnl_version_t* const version = dnnl_version();
  return std::to_string(version->major) + "." + std::to_string(version->minor) + "." + std::to_string(version->patch);
}

std::string onednn_isa() {
  limit_onednn();
  constexpr std::string_view kPrefix = "cpu_isa_";
  const std::string_view name = dnnl_cpu_isa2str(dnnl_get_effective_cpu_isa());
  return std::string(name.substr(name.starts_with(kPrefix) ? kPrefix.size() : 0));
}

}  // namespace routing
