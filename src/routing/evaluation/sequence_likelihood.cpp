#include "routing/evaluation/sequence_likelihood.h"

#include "routing/core/error.h"
#include "routing/core/hash.h"
#include "routing/data/batches.h"
#include "routing/distributed/rank_pieces.h"
#include "routing/evaluation/evaluation_mode.h"
#include "routing/evaluation/likelihood.h"
#include "routing/model/absolute_positions.h"

#include <algorithm>
#include <optional>
#include <span>

namespace routing {
namespace {

void check_model(const SequenceModel& model) {
  require<ConfigError>(!model.reads_source(), model.config().name, ": model.encoder_layers is ",
                       model.config().model.encoder_layers,
                       ", but only a sequence of a decoder-only model is split over ranks; set it to 0");
  const std::string reason = model.reason_against_cache();
  require<ConfigError>(
      reason.empty(), model.config().name, ": ", reason,
      ", so a rank that reads a piece of a sequence cannot know what it sees; take local, strided, fixed, lsh "
      "or full heads, or routing.selection = threshold or nearest");
}

void check_pieces(std::span<const std::int64_t> ends, std::int64_t tokens, int ranks) {
  require<InputError>(static_cast<int>(ends.size()) == ranks, ends.size(), " pieces for ", ranks,
                      " ranks; give one for each");
  std::int64_t begin = 0;
  for (const std::int64_t end : ends) {
    require<InputError>(end >= begin, "a piece of tokens ", begin, " to ", end, "; pieces must follow each other");
    begin = end;
  }
  require<InputError>(begin == tokens, "the last piece ends at token ", begin, ", but the sequence has ", tokens);
}

// All ranks look at all tokens, so that none of them goes on alone.
void check_ids(const SequenceModel& model, TokenView tokens) {
  const ModelConfig& config = model.config().model;
  const std::int64_t longest = config.image_height * config.image_width * 3;
  require<InputError>(longest == 0 || tokens.size() <= longest, model.config().name, ": a sequence of ", tokens.size(),
                      " tokens, but an image has ", longest);
  const std::int64_t placed = longest_of_positions(model.config());
  require<InputError>(placed == 0 || tokens.size() <= placed, model.config().name, ": a sequence of ", tokens.size(),
                      " tokens, but model.positions = ", to_string(config.positions), " has tables for ", placed,
                      " (train.sequence_length)");
  for (std::int64_t token = 0; token < tokens.size(); ++token) {
    require<InputError>(tokens[token] >= 0 && tokens[token] < config.vocab_size, model.config().name, ": token ", token,
                        " has the id ", tokens[token], ", but ids are 0 to ", config.vocab_size - 1);
  }
}

// Rank r would wait for ever for keys that another one does not send.
void check_same_call(RankGroup& ranks, TokenView tokens, const SequenceOptions& options,
                     std::span<const std::int64_t> ends) {
  XxHash64 hash;
  hash.update(tokens.bytes());
  hash.update(std::as_bytes(ends));
  hash.update(std::as_bytes(std::span(&options.precision, 1)));
  const at::Tensor all = ranks.gather(at::full({1}, static_cast<std::int64_t>(hash.digest()), at::kLong));
  for (int rank = 1; rank < ranks.size(); ++rank) {
    require<InputError>(
        at::equal(all[rank], all[0]), "rank ", rank,
        " was given another sequence, other pieces or another precision than rank 0; give all the same");
  }
}

at::Tensor ids(TokenView tokens, std::int64_t begin, std::int64_t end) {
  at::Tensor result = at::empty({1, end - begin}, at::kLong);
  tokens.copy(begin, std::span(result.data_ptr<std::int64_t>(), static_cast<std::size_t>(end - begin)));
  return result;
}

// [begin, end) shifted right by one; nothing stands before the first token of all.
at::Tensor ids_before(TokenView tokens, std::int64_t begin, std::int64_t end) {
  if (begin > 0) return ids(tokens, begin - 1, end - 1);
  return at::constant_pad_nd(ids(tokens, 0, end - 1), {1, 0});
}

// The nats of all pieces, one after the other.
at::Tensor joined_nats(RankGroup& ranks, const at::Tensor& mine, std::span<const std::int64_t> ends) {
  std::int64_t longest = 0;
  for (std::size_t piece = 0; piece < ends.size(); ++piece) {
    longest = std::max(longest, ends[piece] - (piece == 0 ? 0 : ends[piece - 1]));
  }
  const at::Tensor all = ranks.gather(at::constant_pad_nd(mine, {0, longest - mine.numel()}));
  std::vector<at::Tensor> nats;
  for (std::size_t piece = 0; piece < ends.size(); ++piece) {
    nats.push_back(
        all[static_cast<std::int64_t>(piece)].narrow(0, 0, ends[piece] - (piece == 0 ? 0 : ends[piece - 1])));
  }
  return at::cat(nats);
}

}  // namespace

std::vector<int> readers_of(std::span<const std::int64_t> ends) {
  std::vector<int> readers;
  for (std::size_t piece = 0; piece < ends.size(); ++piece) {
    if (ends[piece] > (piece == 0 ? 0 : ends[piece - 1])) readers.push_back(static_cast<int>(piece));
  }
  return readers;
}

std::vector<std::int64_t> even_pieces(std::int64_t tokens, int pieces) {
  require<InputError>(pieces >= 1 && tokens >= 1, "a sequence of ", tokens, " tokens for ", pieces,
                      " ranks; there must be at least one of both");
  std::vector<std::int64_t> ends;
  for (int piece = 0; piece < pieces; ++piece) {
    const RowRange part = rows_of_rank(tokens, piece, pieces);
    ends.push_back(part.first + part.count);
  }
  return ends;
}

SequenceLikelihood sequence_likelihood(SequenceModel& model, TokenView tokens, const SequenceOptions& options) {
  check_model(model);
  OneRank alone;
  RankGroup& ranks = options.ranks != nullptr ? *options.ranks : alone;
  const std::vector<std::int64_t> ends = options.ends.empty() ? even_pieces(tokens.size(), ranks.size()) : options.ends;
  check_pieces(ends, tokens.size(), ranks.size());
  check_same_call(ranks, tokens, options, ends);
  check_ids(model, tokens);
  const EvaluationMode mode(model);
  const at::NoGradGuard no_gradient;
  std::optional<ModelCache> own_cache;
  if (options.cache == nullptr) own_cache = model.make_cache(options.precision);
  ModelCache& cache = own_cache ? *own_cache : *options.cache;

  const auto rank = static_cast<std::size_t>(ranks.rank());
  SequenceLikelihood result{.begin = rank == 0 ? 0 : ends[rank - 1], .end = ends[rank]};
  at::Tensor mine = at::empty({0});
  if (result.end > result.begin) {
    const std::vector<std::int64_t> sequence{cache.add_sequence()};
    cache.begin_at(sequence.front(), result.begin);
    RankPieces pieces(ranks, readers_of(ends));
    const CommunicationCounts before = ranks.counts();
    mine = model
               .nats_cached(ids_before(tokens, result.begin, result.end), ids(tokens, result.begin, result.end), cache,
                            sequence, {.precision = options.precision, .pieces = &pieces})
               .flatten();
    result.bytes_sent = ranks.counts().bytes_sent - before.bytes_sent;
    result.waiting_seconds = ranks.counts().waiting_seconds - before.waiting_seconds;
    if (options.cache != nullptr) result.cached = sequence.front();
  }
  result.nats = joined_nats(ranks, mine, ends);
  NatsSum sum;
  for (std::int64_t token = 0; token < tokens.size(); ++token) {
    sum.add(static_cast<double>(result.nats.data_ptr<float>()[token]));
  }
  result.total = sum.total();
  return result;
}

}  // namespace routing
