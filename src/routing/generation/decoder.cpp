#include "routing/generation/decoder.h"

#include "routing/core/error.h"
#include "routing/generation/model_decoder.h"

#include <utility>

namespace routing {

std::unique_ptr<Decoder> make_decoder(std::shared_ptr<SequenceModel> model, const DecoderOptions& options) {
  require<InputError>(model != nullptr, "decoder: there is no model to decode with");
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
