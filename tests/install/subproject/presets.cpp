// A configuration by the library, without torch.
#include <cstdio>
#include <routing/config/resolve.h>

int main() {
  const routing::ExperimentConfig config = routing::resolve({.preset = "tiny-enwik8", .settings = {"train.steps=7"}});
  std::printf("%s, %d steps\n", config.name.c_str(), static_cast<int>(config.train.steps));
  return config.name == "tiny-enwik8" && config.train.steps == 7 ? 0 : 1;
}
