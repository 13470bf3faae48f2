// What the arguments of `routing eval` say.
#pragma once

#include "ranks/rank_options.h"

#include <cstdint>
#include <string>

namespace routing {

struct EvalOptions {
  std::string run;
  std::string checkpoint = "best";
  std::string data;   // a list of paths: config/text/path_list.h
  std::string cache;  // instead of that of the run, if not empty
  std::string vocabulary;
  std::string split;  // empty: see usual_split()
  std::string precision;
  std::int64_t sequence_length = 0;
  std::int64_t stride = 0;
  std::int64_t memory = 0;
  std::int64_t batch_size = 0;
  std::int64_t limit_tokens = 0;
  double subwords_per_word = 0.0;
  bool require_whole = false;
  bool json = false;
  std::string nats;             // a file for what every token cost; empty: none
  bool split_sequence = false;  // every window over the ranks
  LocalRanks ranks;
  // By recurrence; see eval_recurrence.h.
  bool by_recurrence = false;
  std::int64_t context = 0;
  std::int64_t reach = 0;
  std::string against;
  bool by_position = false;  // see eval_position.h
};

}  // namespace routing
