// What the arguments of `routing serve` say.
#pragma once

#include "serve/quota.h"

#include <cstdint>
#include <string>
#include <vector>

namespace routing {

struct ServeOptions {
  std::vector<std::string> runs;
  std::string host = "127.0.0.1";
  std::int64_t port = 8080;
  std::string token_file;
  std::vector<std::string> origins;  // of --cors
  std::vector<std::string> names;    // of --name: what clients may call this host

  std::string checkpoint = "best";
  std::string precision;
  std::int64_t models = 4;
  QuotaLimits quota = {};
  std::int64_t prefill_block = 256;
  std::int64_t prefix_cache = 256;  // MiB
  std::int64_t probe_cache = 512;   // MiB
  double request_seconds = 600.0;
  std::int64_t body_limit = 8;  // MiB
  std::int64_t connections = 10000;
};

}  // namespace routing
