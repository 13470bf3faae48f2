// What `routing audit` looks at: a model, and sequences for it to read.
#pragma once

#include "analyze/audit_options.h"
#include "routing/model/sequence_model.h"

#include <ATen/ATen.h>

#include <filesystem>
#include <memory>
#include <string>

namespace routing {

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
