// POST /v1/images/completions.
#pragma once

#include "routing/data/images/image.h"
#include "serve/request/decoding_job.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace routing {

class ImageJob : public DecodingJob {
 public:
  ImageJob(JobSurroundings& surroundings, JobRequest request, ImageFields fields)
      : DecodingJob(surroundings, std::move(request)), fields_(std::move(fields)) {}

 protected:
  const SamplingFields& fields() const override { return fields_; }
  Prepared prepare(ServedModel& model) override;
  bool take(std::size_t choice, const TokenDraw& draw, std::span<const float> logits) override;
  void end(std::size_t choice, StopReason reason) override;
  void answer() override;

 private:
  struct Drawn {
    std::vector<std::int32_t> tokens = {};  // the rows that were kept, and what was drawn
    double nats = 0.0;
  };
  nlohmann::ordered_json json_of(std::size_t choice) const;

  ImageFields fields_;
  ImageShape shape_ = {};
  std::vector<Drawn> images_;
};

}  // namespace routing
