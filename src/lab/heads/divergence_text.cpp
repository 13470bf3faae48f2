#include "lab/heads/divergence_text.h"

#include <fmt/core.h>
#include <numbers>

namespace routing {
namespace {

std::string cell(const Divergence& divergence) {
  return divergence.draws == 0 ? "-" : fmt::format("{:.4f} ± {:.4f}", divergence.mean, divergence.deviation);
}

}  // namespace

MatrixFigure divergence_figure(const HeadDivergence& result, const std::string& title) {
  MatrixFigure figure{.title = title,
                      .caption = "mean Jensen-Shannon divergence of two heads' rows of attention, nats",
                      .low = 0.0,
                      .high = std::numbers::ln2,
                      .high_name = "ln 2",
                      .panels = {}};
  for (std::size_t number = 0; number < result.layers.size(); ++number) {
    const LayerDivergence& layer = result.layers[number];
    MatrixPanel panel{.title = "layer " + std::to_string(number), .labels = {}, .values = layer.matrix};
    for (std::size_t head = 0; head < layer.patterns.size(); ++head) {
      panel.labels.push_back(layer.patterns[head] + " " + std::to_string(head));
    }
    figure.panels.push_back(panel);
  }
  return figure;
}

std::string divergence_markdown(const HeadDivergence& result) {
  std::string text =
      "| layer | local, local | local, content | content, content | published l, l | published l, r | published r, r "
      "|\n|---|---|---|---|---|---|---|\n";
  for (std::size_t number = 0; number < result.layers.size(); ++number) {
    const LayerDivergence& layer = result.layers[number];
    text += "| " + std::to_string(number) + " | " + cell(layer.local_local) + " | " + cell(layer.local_content) +
            " | " + cell(layer.content_content) + " |";
    if (number < published_divergence().size()) {
      const PublishedDivergence& theirs = published_divergence()[number];
      for (const auto& entry : {theirs.local_local, theirs.local_routing, theirs.routing_routing}) {
        text += " " + fmt::format("{:.4f} ± {:.4f}", entry.mean, entry.deviation) + " |";
      }
    } else {
      text += " - | - | - |";
    }
    text += "\n";
  }
  return text;
}

}  // namespace routing
