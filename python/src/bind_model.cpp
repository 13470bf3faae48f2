// Trained models: what they predict, and what their heads read.
#include "bindings.h"
#include "inputs/run_model.h"
#include "lab/heads/head_reading.h"
#include "loaded_model.h"
#include "routing/config/keys.h"
#include "routing/core/error.h"
#include "routing/data/tasks/sequence_tasks.h"
#include "routing/evaluation/target_accuracy.h"
#include "routing/evaluation/token_likelihood.h"
#include "routing/model/weights.h"

#include <algorithm>
#include <utility>

namespace routing::python {

const Tokenizer& LoadedModel::text_of(const char* what) const {
  require<InputError>(tokenizer != nullptr, path.string(), ": holds a model of ", is_image() ? "images" : "symbols",
                      ", which have no text for ", what, "; use ids");
  return *tokenizer;
}

std::int64_t LoadedModel::end_token() const {
  if (model->reads_source()) return kEndSymbol;
  return tokenizer == nullptr || tokenizer->kind() == "words" ? -1 : tokenizer->end_id();
}

at::Tensor batch_of(const LoadedModel& model, const at::Tensor& tokens, const char* name) {
  require<InputError>(!at::isFloatingType(tokens.scalar_type()) && !at::isComplexType(tokens.scalar_type()), name,
                      " are ", tokens.scalar_type(), ", but must be whole numbers");
  at::Tensor ids = tokens.to(at::kCPU, at::kLong);
  if (ids.dim() == 1) ids = ids.unsqueeze(0);
  require<InputError>(ids.dim() == 2 && ids.numel() > 0, name, " are ", tokens.sizes(),
                      ", but must be [tokens] or [sequences, tokens] with at least one token");
  const std::int64_t vocabulary = model.config().model.vocab_size;
  const auto lowest = ids.min().item<std::int64_t>();
  const auto highest = ids.max().item<std::int64_t>();
  require<InputError>(lowest >= 0 && highest < vocabulary, name, " hold the id ", lowest < 0 ? lowest : highest,
                      ", but the model's are 0 to ", vocabulary - 1);
  return ids.contiguous();
}

std::vector<std::int32_t> ids_of(const LoadedModel& model, const at::Tensor& tokens, const char* name) {
  if (tokens.numel() == 0) return {};
  const at::Tensor ids = batch_of(model, tokens, name);
  require<InputError>(ids.size(0) == 1, name, " are ", ids.size(0), " sequences, but must be one");
  const auto* begin = ids.data_ptr<std::int64_t>();
  return {begin, begin + ids.size(1)};
}

namespace {

LoadedModel load(const std::string& run, const std::string& checkpoint, const std::string& vocabulary,
                 const std::string& precision) {
  const py::gil_scoped_release others_may_run;
  LoadedModel loaded;
  loaded.path = model_file(run, checkpoint);
  loaded.model = load_sequence_model(loaded.path);
  loaded.notes = load_model_notes(loaded.path);
  loaded.precision = chosen_precision(precision, loaded.config());
  const bool has_text = !loaded.is_image() && !loaded.model->reads_source();
  if (has_text) loaded.tokenizer = model_tokenizer(loaded.path, loaded.config(), vocabulary);
  return loaded;
}

// The batch of a call, with the source of an encoder-decoder.
TokenBatch token_batch(const LoadedModel& model, const at::Tensor& tokens, const std::optional<at::Tensor>& source) {
  require<InputError>(model.model->reads_source() == source.has_value(), model.path.string(),
                      source ? ": has no encoder; leave out the source" : ": reads a source, but none was given");
  TokenBatch batch{.tokens = batch_of(model, tokens, "tokens")};
  if (source) batch.source = batch_of(model, *source, "source");
  return batch;
}

at::Tensor logits(const LoadedModel& model, const at::Tensor& tokens, const std::optional<at::Tensor>& source) {
  const TokenBatch batch = token_batch(model, tokens, source);
  const py::gil_scoped_release others_may_run;
  const at::NoGradGuard no_gradient;
  return model.model->logits(batch, {.precision = model.precision});
}

// Of the token behind these, which may be none; of an encoder-decoder they are the source, and it is the first target.
at::Tensor next_logits(const LoadedModel& model, const at::Tensor& tokens) {
  const std::vector<std::int32_t> ids = ids_of(model, tokens, "tokens");
  const py::gil_scoped_release others_may_run;
  const std::unique_ptr<Decoder> decoder = make_decoder(model.model, {.precision = model.precision});
  return at::tensor(decoder->begin(ids).logits);
}

at::Tensor nats(const LoadedModel& model, const at::Tensor& tokens, const std::optional<at::Tensor>& source) {
  const TokenBatch batch = token_batch(model, tokens, source);
  const py::gil_scoped_release others_may_run;
  if (!model.model->reads_source()) {
    const at::NoGradGuard no_gradient;
    return model.model->loss(batch, {.precision = model.precision}).nats;
  }
  // `routing eval` scores pairs from their logits, in double, and these are to be its bits.
  at::Tensor all = at::empty(batch.tokens.sizes(), at::kFloat);
  auto* next = all.data_ptr<float>();
  score_targets(*model.model, batch, model.precision,
                [&](const ScoredWindow& window) { next = std::copy(window.nats.begin(), window.nats.end(), next); });
  return all;
}

// Ctrl-C, which Python notes and nobody would look at before the end of a long call.
void stop_if_interrupted() {
  const py::gil_scoped_acquire python;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

// What every token of a text costs, in windows as `routing eval` reads them.
at::Tensor score(const LoadedModel& model, const at::Tensor& tokens, std::int64_t sequence_length,
                 std::int64_t stride) {
  require<InputError>(!model.model->reads_source(), model.path.string(),
                      ": reads a source, so a text by itself has no score; use nats(target, source)");
  const std::vector<std::int32_t> ids = ids_of(model, tokens, "tokens");
  require<InputError>(!ids.empty(), "tokens: there are none to score");
  at::Tensor all = at::empty({static_cast<std::int64_t>(ids.size())}, at::kFloat);
  auto* next = all.data_ptr<float>();
  const ExperimentConfig& config = model.config();
  const py::gil_scoped_release others_may_run;
  LikelihoodOptions options{
      .sequence_length = sequence_length > 0 ? sequence_length : config.train.sequence_length,
      .stride = stride >= 0 ? stride : config.eval.stride,
      .batch_size = 1,
      .record_length = model.is_image() ? 3 * config.model.image_height * config.model.image_width : 0,
      .precision = model.precision};
  options.scored = [&](const ScoredWindow& window) {
    stop_if_interrupted();
    for (auto i = static_cast<std::size_t>(window.scored_from); i < window.nats.size(); ++i) {
      *next++ = window.nats[i];
    }
  };
  token_likelihood(*model.model, ids, options);
  return all;
}

ModelProbes probes_of(const LoadedModel& model, const at::Tensor& tokens) {
  const at::Tensor ids = batch_of(model, tokens, "tokens");
  require<InputError>(ids.size(0) == 1, "tokens are ", ids.size(0), " sequences, but must be one");
  const py::gil_scoped_release others_may_run;
  const at::NoGradGuard no_gradient;
  return model.model->probe(ids, {.precision = model.precision});
}

py::list attention(const LoadedModel& model, const at::Tensor& tokens, std::int64_t position,
                   std::optional<std::int64_t> layer, std::optional<std::int64_t> head) {
  const ModelProbes probes = probes_of(model, tokens);
  py::list readings;
  for (const HeadReading& reading : read_heads(probes, {.token = position, .layer = layer, .head = head})) {
    std::vector<std::int64_t> keys;
    std::vector<double> weights;
    for (const ReadToken& read : reading.reads) {
      keys.push_back(read.token);
      weights.push_back(read.weight);
    }
    py::dict dict;
    dict["layer"] = reading.layer;
    dict["head"] = reading.head;
    dict["pattern"] = reading.pattern;
    dict["clusters"] = reading.clusters;
    dict["tokens"] = at::tensor(keys, at::kLong);
    dict["weights"] = at::tensor(weights, at::kDouble);
    readings.append(dict);
  }
  return readings;
}

// [layer][head group]: plans of a pass over these tokens.
std::vector<std::vector<Plan>> plans(const LoadedModel& model, const at::Tensor& tokens) {
  std::vector<std::vector<Plan>> all;
  for (const auto& layer : probes_of(model, tokens)) {
    all.emplace_back();
    for (const GroupProbe& probe : layer) all.back().push_back(probe.plan);
  }
  return all;
}

// bool [tokens, clusters] of every routed head, as (layer, head, membership).
py::list clusters(const LoadedModel& model, const at::Tensor& tokens) {
  const ModelProbes probes = probes_of(model, tokens);
  py::list heads;
  for (std::size_t layer = 0; layer < probes.size(); ++layer) {
    for (const GroupProbe& probe : probes[layer]) {
      if (probe.pattern_name != "routing") continue;
      const std::int64_t count = probe.plan.num_groups() / probe.heads();
      for (std::int64_t head = probe.first_head; head < probe.first_head + probe.heads(); ++head) {
        const auto of_tokens = token_clusters(probes, static_cast<std::int64_t>(layer), head);
        at::Tensor members = at::zeros({static_cast<std::int64_t>(of_tokens.size()), count}, at::kBool);
        for (std::size_t token = 0; token < of_tokens.size(); ++token) {
          for (const std::int32_t cluster : of_tokens[token]) {
            members.data_ptr<bool>()[static_cast<std::int64_t>(token) * count + cluster] = true;
          }
        }
        heads.append(py::make_tuple(layer, head, members));
      }
    }
  }
  return heads;
}

py::dict settings_of(const LoadedModel& model) {
  py::dict settings;
  for (const std::string& key : experiment_keys()) settings[key.c_str()] = get_key(model.config(), key);
  return settings;
}

}  // namespace

void bind_model(py::module_& module) {
  py::class_<LoadedModel, std::shared_ptr<LoadedModel>>(module, "LoadedModel")
      .def(py::init(&load), py::arg("run"), py::arg("checkpoint"), py::arg("vocabulary"), py::arg("precision"))
      .def_property_readonly("path", [](const LoadedModel& model) { return model.path.string(); })
      .def_property_readonly("settings", &settings_of)
      .def_property_readonly("precision",
                             [](const LoadedModel& model) { return std::string(to_string(model.precision)); })
      .def_property_readonly("validity", [](const LoadedModel& model) { return validity_label(model.config()); })
      .def_property_readonly("audit", [](const LoadedModel& model) { return audit_text(model.notes); })
      .def_property_readonly("data_label", [](const LoadedModel& model) { return model.notes.data_label; })
      .def_property_readonly("is_image", &LoadedModel::is_image)
      .def_property_readonly("reads_source", [](const LoadedModel& model) { return model.model->reads_source(); })
      .def_property_readonly("vocabulary_size",
                             [](const LoadedModel& model) { return model.config().model.vocab_size; })
      .def_property_readonly("end_token", &LoadedModel::end_token)
      .def_property_readonly("num_parameters", [](const LoadedModel& model) { return model.model->num_parameters(); })
      .def_property_readonly("token_kind",
                             [](const LoadedModel& model) {
                               if (model.tokenizer) return model.tokenizer->kind();
                               return std::string(model.is_image() ? "subpixels" : "symbols");
                             })
      .def("tensors", [](const LoadedModel& model) { return named_tensors(*model.model); })
      .def("encode",
           [](const LoadedModel& model, const std::string& text) {
             std::vector<std::int32_t> ids;
             model.text_of("encode").encode(text, ids);
             return at::tensor(ids, at::kInt).to(at::kLong);
           })
      .def("decode",
           [](const LoadedModel& model, const at::Tensor& tokens) {
             return py::bytes(model.text_of("decode").decode(ids_of(model, tokens, "tokens")));
           })
      .def("logits", &logits, py::arg("tokens"), py::arg("source"))
      .def("next_logits", &next_logits, py::arg("tokens"))
      .def("nats", &nats, py::arg("tokens"), py::arg("source"))
      .def("score", &score, py::arg("tokens"), py::arg("sequence_length"), py::arg("stride"))
      .def("attention", &attention, py::arg("tokens"), py::arg("position"), py::arg("layer"), py::arg("head"))
      .def("plans", &plans, py::arg("tokens"))
      .def("clusters", &clusters, py::arg("tokens"));
}

}  // namespace routing::python
