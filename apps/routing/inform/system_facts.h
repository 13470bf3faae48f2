// What the machine and the libraries in this process say about themselves; `info` prints it, `doctor` judges it.
#pragma once

#include "inform/doctor_checks.h"

#include <string>

namespace routing {

BlasFacts blas_facts();
MemoryFacts memory_facts();

std::string libtorch_version();
// libtorch's word for the vector instructions of its own loops: "AVX2", "AVX512", "NO AVX" and so on
std::string libtorch_cpu_capability();

std::string onednn_version();
// The best instruction set that oneDNN allows itself here.
std::string onednn_isa();

}  // namespace routing
