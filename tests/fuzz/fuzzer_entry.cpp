// Clang's fuzzer over one target: ROUTING_FUZZ_TARGET is its function. `--seeds=DIR` writes its seeds there and ends,
// `--longest` says how long its inputs get.
#include "fuzz/targets.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string_view>

namespace {

const routing::fuzz::FuzzTarget& target() {
  static const routing::fuzz::FuzzTarget found = routing::fuzz::ROUTING_FUZZ_TARGET();
  return found;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  constexpr std::string_view kSeeds = "--seeds=";
  for (int index = 1; index < *count; ++index) {
    const std::string_view argument = (*arguments)[index];
    if (argument == "--longest") {
      std::cout << target().longest << '\n';
      std::exit(0);
    }
    if (!argument.starts_with(kSeeds)) continue;
    const std::filesystem::path folder = argument.substr(kSeeds.size());
    std::filesystem::create_directories(folder);
    int number = 0;
    for (const std::string& seed : target().seeds()) {
      std::ofstream(folder / ("seed-" + std::to_string(number++)), std::ios::binary) << seed;
    }
    std::exit(0);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  target().run({data, size});
  return 0;
}
