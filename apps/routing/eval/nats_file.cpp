#include "eval/nats_file.h"

#include "routing/config/text/number_text.h"

#include <span>

namespace routing {
namespace {

template <class Number>
std::string list_of(std::span<const Number> numbers) {
  std::string text = "[";
  for (const Number number : numbers) text += (text.size() > 1 ? "," : "") + number_text(number);
  return text + "]";
}

}  // namespace

std::string nats_line(const ScoredWindow& window) {
  std::string line = R"({"tokens": )" + list_of(window.tokens) + R"(, "nats": )" + list_of(window.nats) +
                     R"(, "scored_from": )" + number_text(window.scored_from);
  if (!window.source.empty()) line += R"(, "source": )" + list_of(window.source);
  return line + "}\n";
}

void NatsFile::add(const ScoredWindow& window) {
  const std::string line = nats_line(window);
  file_.write(std::as_bytes(std::span(line)));
}

}  // namespace routing
