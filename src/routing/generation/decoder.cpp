#include "routing/generation/decoder.h"

#include "routing/core/error.h"
#include "routing/generation/model_decoder.h"

#include <utility>

namespace routing {

std::vector<Decoder::Extended> Decoder::extend_each(std::span<const More> pieces) {
  std::vector<Extended> all(pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    try {
      all[i].logits = extend(pieces[i].sequence, pieces[i].tokens);
    } catch (...) {
      all[i].error = std::current_exception();
    }
  }
  return all;
}

std::unique_ptr<Decoder> make_decoder(std::shared_ptr<SequenceModel> model, const DecoderOptions& options) {
  require<InputError>(model != nullptr, "decoder: there is no model to decode with");
  if (options.pieces != nullptr) {
    std::string why = model->reads_source() ? "a source is read whole" : model->reason_against_cache();
    if (why.empty() && model->config().memory.length > 0) why = "segments that remember are read one after the other";
    if (why.empty() && !options.allow_cache) why = "a cache was not wanted";
    require<ConfigError>(why.empty(), "a prompt cannot be split over ranks: ", why, "; let one process read it");
  }
  if (!options.allow_cache) return make_rerun_decoder(std::move(model), options, "a cache was not wanted");
  const std::string reason = model->reason_against_cache();
  if (reason.empty()) return make_cached_decoder(model, options);
  if (model->config().memory.compressed > 0) {
    return make_rerun_decoder(std::move(model), options, reason + ", so each new token runs its segment again");
  }
  return make_rerun_decoder(
      std::move(model), options,
      reason +
          ", so each new token runs the whole prefix again; a model with routing.selection = threshold or nearest, "
          "local, strided, fixed, lsh or full heads decodes with a cache");
}

}  // namespace routing
