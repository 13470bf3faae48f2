#include "shell/option_names.h"

#include <array>

namespace routing {

std::span<const OptionName> option_names() {
  static constexpr auto kNames = std::to_array<OptionName>({
      // train, quickstart and data
      {"preset", "--preset"},
      {"settings", "--set"},
      {"Trainer", "routing train"},
      {"resume", "--resume"},
      {"run", "--out"},
      {"folder", "--out"},
      {"data.path", "--data PATH"},
      {"data.require_whole", "--require-whole"},
      {"data.tokens", "--tokens"},
      // table
      {"data", "--data PATH"},
      {"minutes", "--minutes"},
      {"part", "--part"},
      {"rows", "--rows"},
      {"seeds", "--seeds"},
      {"steps", "--steps"},
      {"table_specs", "--list"},
      // export
      {"export", "--out"},
      {"replace", "--force"},
      // convert
      {"entry", "--entry"},
      // bench and analyze
      {"contents", "--content"},
      {"n", "--tokens"},
      {"repeats", "--repeats"},
      {"sweep.n", "--sweep-tokens"},
      {"sweep.to", "--clusters-to"},
      {"train.batch_size", "--batch"},
      {"train.sequence_length", "--tokens"},
      {"window", "--window"},
      {"windows", "--windows"},
  });
  return kNames;
}

std::string with_flags(std::string message) {
  for (const OptionName& name : option_names()) {
    const std::string quoted = "`" + std::string(name.in_library) + "`";
    for (std::size_t place = message.find(quoted); place != std::string::npos; place = message.find(quoted, place)) {
      message.replace(place, quoted.size(), name.flag);
    }
  }
  return message;
}

}  // namespace routing
