// What the server says of itself: /metrics.
#include "lab/measure/memory.h"
#include "serve/api_server.h"

#include <utility>

namespace routing {

using Reading = ServerMetrics::Reading;

void ApiServer::publish_readings() {
  std::vector<Reading> readings;
  std::vector<std::string> loaded;
  const auto add = [&](std::string_view name, std::string_view help, std::string_view type, auto value,
                       const std::string& model) {
    readings.push_back({name, help, type, static_cast<double>(value), "model=\"" + label_value(model) + "\""});
  };
  struct Row {
    std::string_view name, help, type;
    double (*value)(const ServedModel& model, const CompletionBatch::Facts& facts);
  };
  static constexpr auto count = [](std::int64_t value) { return static_cast<double>(value); };
  static const std::vector<Row> rows{
      {"routing_sequences_active", "Samples that get a token in each round.", "gauge",
       [](const ServedModel&, const CompletionBatch::Facts& facts) { return count(facts.active); }},
      {"routing_requests_waiting", "Requests that wait for their turn.", "gauge",
       [](const ServedModel&, const CompletionBatch::Facts& facts) { return count(facts.waiting); }},
      {"routing_prompts_reading", "Prompts that are being read.", "gauge",
       [](const ServedModel&, const CompletionBatch::Facts& facts) { return count(facts.reading); }},
      {"routing_rounds_total", "Steps of the batch.", "counter",
       [](const ServedModel&, const CompletionBatch::Facts& facts) { return count(facts.rounds); }},
      {"routing_tokens_drawn_total", "Tokens drawn, of requests that go on as well.", "counter",
       [](const ServedModel&, const CompletionBatch::Facts& facts) { return count(facts.tokens_drawn); }},
      {"routing_prompt_tokens_read_total", "Tokens of prompts that were read, not those that were kept from before.",
       "counter",
       [](const ServedModel&, const CompletionBatch::Facts& facts) { return count(facts.prompt_tokens_read); }},
      {"routing_prefix_hits_total", "Prompts of which a beginning was kept from before.", "counter",
       [](const ServedModel&, const CompletionBatch::Facts& facts) { return count(facts.prefixes.hits); }},
      {"routing_prefix_misses_total", "Prompts of which nothing was.", "counter",
       [](const ServedModel&, const CompletionBatch::Facts& facts) { return count(facts.prefixes.misses); }},
      {"routing_prefix_tokens_saved_total", "Tokens of prompts that were kept from before.", "counter",
       [](const ServedModel&, const CompletionBatch::Facts& facts) { return count(facts.prefixes.tokens_saved); }},
      {"routing_prefix_bytes", "Keys and values of kept beginnings.", "gauge",
       [](const ServedModel&, const CompletionBatch::Facts& facts) { return count(facts.prefixes.bytes); }},
      {"routing_cache_bytes", "Keys and values of all sequences.", "gauge",
       [](const ServedModel& model, const CompletionBatch::Facts&) { return count(model.decoder->cache_bytes()); }},
  };
  const std::vector<std::shared_ptr<ServedModel>> all = models_.current();
  loaded.reserve(all.size());
  for (const auto& model : all) loaded.push_back(model->name);
  for (const Row& row : rows) {
    for (const auto& model : all)
      add(row.name, row.help, row.type, row.value(*model, model->batch->facts()), model->name);
  }
  const std::lock_guard lock(readings_mutex_);
  readings_ = std::move(readings);
  loaded_ = std::move(loaded);
  problems_ = models_.problems();
}

std::string ApiServer::metrics_text() const {
  std::vector<Reading> readings;
  const auto add = [&](std::string_view name, std::string_view help, std::string_view type, auto value,
                       std::string labels = {}) {
    readings.push_back({name, help, type, static_cast<double>(value), std::move(labels)});
  };
  const http::Counters counters = http_->counters();
  add("routing_connections_open", "Connections.", "gauge", counters.connections_open);
  add("routing_connections_total", "Connections since the start.", "counter", counters.connections_total);
  add("routing_connections_refused_total", "Connections over the limit.", "counter", counters.connections_refused);
  for (std::size_t hundreds = 1; hundreds < counters.answers.size(); ++hundreds) {
    add("routing_answers_total", "Answers by the hundreds of their status.", "counter", counters.answers.at(hundreds),
        "status=\"" + std::to_string(hundreds) + "xx\"");
  }
  add("routing_received_bytes_total", "Bytes that came in.", "counter", counters.bytes_in);
  add("routing_sent_bytes_total", "Bytes that went out.", "counter", counters.bytes_out);
  add("routing_timeouts_total", "Connections ended by a deadline.", "counter", counters.timeouts);
  add("routing_clients_gone_total", "Clients that left before they had their answer.", "counter", counters.gone);
  const Quota::Taken taken = quota_.taken();
  add("routing_queue_sequences", "Sequences that wait or are decoded.", "gauge", taken.sequences);
  add("routing_queue_tokens", "Tokens of prompts and of what was asked for, the same.", "gauge", taken.tokens);
  add("routing_queue_bytes", "Bytes of bodies, the same.", "gauge", taken.bytes);
  add("routing_queue_refused_total", "Requests refused because the queue was full.", "counter", taken.refused);
  add("process_resident_memory_bytes", "Memory of the process.", "gauge", bench::resident_bytes());
  const std::lock_guard lock(readings_mutex_);
  readings.insert(readings.end(), readings_.begin(), readings_.end());
  return metrics_.text(readings);
}

}  // namespace routing
