// What `routing audit` looks at: a model, and sequences for it to read.
#pragma once

#include "routing/model/sequence_model.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace routing {

struct AuditSubjectOptions {
  std::string run;  // a trained model; empty for fresh weights of the experiment below
  std::string checkpoint = "best";
  std::string preset;
  std::string file;
  std::vector<std::string> settings;
  std::string data;  // other data than the experiment's
  std::string vocabulary;
  std::int64_t sequence_length = 0;
  std::uint64_t seed = 1;  // of made-up tokens
  std::function<void(const std::string&)> notes = {};
};

struct AuditSubject {
  std::filesystem::path model_file = {};            // empty for fresh weights
  std::filesystem::file_time_type model_time = {};  // when that file was last written
  std::shared_ptr<SequenceModel> model = {};
  at::Tensor tokens = {};        // int64 [2, n]
  at::Tensor source = {};        // int64 [m] for an encoder-decoder
  std::string tokens_from = {};  // in words
};

// Real tokens where the experiment or --data names some that are there, made-up ones otherwise.
AuditSubject open_audit_subject(const AuditSubjectOptions& options);

}  // namespace routing
