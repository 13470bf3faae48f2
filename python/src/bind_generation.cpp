// Text and images as they come.
#include "bindings.h"
#include "loaded_model.h"
#include "routing/core/error.h"
#include "routing/generation/generate.h"
#include "routing/generation/text_stream.h"

#include <utility>

namespace routing::python {
namespace {

struct GeneratedToken {
  std::size_t sample = 0;
  std::int32_t token = 0;
  double log_probability = 0.0;
  std::string piece = {};                          // text that has become certain, of models of text
  std::optional<std::string> stop = std::nullopt;  // set with the last token of a sample
};

class ModelGeneration {
 public:
  ModelGeneration(std::shared_ptr<const LoadedModel> model, const std::vector<std::int32_t>& prompt,
                  const GenerateOptions& options, const std::vector<std::string>& stops)
      : model_(std::move(model)),
        decoder_(make_decoder(model_->model, {.precision = model_->precision})),
        generation_(*decoder_, with_known_tokens(options)) {
    for (std::int64_t i = 0; model_->tokenizer && i < options.samples_per_prompt; ++i) {
      streams_.emplace_back(*model_->tokenizer, stops);
    }
    generation_.begin(prompt, 0, static_cast<std::size_t>(options.samples_per_prompt));
  }

  // One token of every sample that goes on; empty at the end.
  std::vector<GeneratedToken> next() {
    const py::gil_scoped_release others_may_run;
    std::vector<GeneratedToken> tokens;
    if (!generation_.goes_on()) return tokens;
    std::vector<std::string> pieces(streams_.size());
    const auto steps = generation_.step([&](std::size_t sample, const TokenDraw& draw, std::span<const float>) {
      if (streams_.empty()) return true;
      pieces[sample] = streams_[sample].add(draw.token);
      return !streams_[sample].stopped();
    });
    for (const Generation::Step& step : steps) {
      GeneratedToken token{.sample = step.sample,
                           .token = step.draw.token,
                           .log_probability = step.draw.log_probability,
                           .piece = streams_.empty() ? std::string() : std::move(pieces[step.sample])};
      if (step.stop) {
        if (!streams_.empty()) token.piece += streams_[step.sample].finish();
        const bool by_text = !streams_.empty() && streams_[step.sample].stopped();
        token.stop = by_text ? "stop text" : std::string(to_string(*step.stop));
      }
      tokens.push_back(std::move(token));
    }
    return tokens;
  }

  std::string label() const { return decoder_->label(); }

 private:
  GenerateOptions with_known_tokens(GenerateOptions options) const {
    if (model_->tokenizer) options.known_tokens = model_->tokenizer->vocabulary_size();
    return options;
  }

  std::shared_ptr<const LoadedModel> model_;
  std::unique_ptr<Decoder> decoder_;
  Generation generation_;
  std::vector<TextStream> streams_;
};

}  // namespace

void bind_generation(py::module_& module) {
  py::class_<GeneratedToken>(module, "GeneratedToken")
      .def_readonly("sample", &GeneratedToken::sample)
      .def_readonly("token", &GeneratedToken::token)
      .def_readonly("log_probability", &GeneratedToken::log_probability)
      .def_property_readonly("piece", [](const GeneratedToken& token) { return py::bytes(token.piece); })
      .def_readonly("stop", &GeneratedToken::stop);
  py::class_<ModelGeneration>(module, "Generation")
      .def(py::init([](const std::shared_ptr<LoadedModel>& model, const at::Tensor& prompt, std::int64_t max_new_tokens,
                       std::int64_t samples, double temperature, std::int64_t top_k, double top_p, double min_p,
                       double repetition_penalty, std::uint64_t seed, std::int64_t end_token,
                       const std::vector<std::string>& stops) {
             require<InputError>(samples >= 1, "samples is ", samples, ", but must be at least 1");
             const std::vector<std::int32_t> ids = ids_of(*model, prompt, "prompt");
             const py::gil_scoped_release others_may_run;
             return std::make_unique<ModelGeneration>(
                 model, ids,
                 GenerateOptions{.sampling = {.temperature = temperature,
                                              .top_k = top_k,
                                              .top_p = top_p,
                                              .min_p = min_p,
                                              .repetition_penalty = repetition_penalty,
                                              .seed = seed},
                                 .max_new_tokens = max_new_tokens,
                                 .samples_per_prompt = samples,
                                 .end_token = end_token},
                 stops);
           }),
           py::arg("model"), py::arg("prompt"), py::arg("max_new_tokens"), py::arg("samples"), py::arg("temperature"),
           py::arg("top_k"), py::arg("top_p"), py::arg("min_p"), py::arg("repetition_penalty"), py::arg("seed"),
           py::arg("end_token"), py::arg("stops"))
      .def("next", &ModelGeneration::next)
      .def_property_readonly("label", &ModelGeneration::label);
}

}  // namespace routing::python
