// The server: its threads, and what its addresses answer.
//
//   I/O       http::Server: reads, checks and writes; never computes, never reads files
//   files     FileWorker: what the page asks about runs
//   compute   the thread that calls run(): models, decoding, analysis
#pragma once

#include "routing/serving/http/http_server.h"
#include "serve/compute_loop.h"
#include "serve/file_worker.h"
#include "serve/page/page_runs.h"
#include "serve/page/probe_cache.h"
#include "serve/page/run_catalog.h"
#include "serve/quota.h"
#include "serve/request/decoding_job.h"
#include "serve/router.h"
#include "serve/serve_options.h"
#include "serve/served_models.h"
#include "serve/server_metrics.h"

#include <nlohmann/json.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace routing {

class ApiServer {
 public:
  // Listens when it is made. `note` hears of what no client is told. Throws what http::Server and RunCatalog throw.
  ApiServer(const ServeOptions& options, std::function<void(const std::string&)> note);
  ~ApiServer();
  ApiServer(const ApiServer&) = delete;
  ApiServer& operator=(const ApiServer&) = delete;

  std::uint16_t port() const { return http_->port(); }
  std::size_t connection_limit() const { return http_->connection_limit(); }
  std::vector<ServedRun> runs() const { return catalog_.runs(); }
  // Serves until `stops` says so, and what was begun is finished.
  void run(const std::function<bool()>& stops);

 private:
  using Json = nlohmann::ordered_json;

  void add_model_routes();
  void add_page_routes();
  void add_static_routes();
  void handle(http::Request request, std::shared_ptr<http::Reply> reply);

  // What a handler does elsewhere; what it returns is sent, what it throws is answered.
  void on_files(const std::shared_ptr<http::Reply>& reply, std::function<Json()> make);
  void on_compute(const Asked& asked, std::function<Json()> make);
  template <class Job, class Fields>
  void decode(const Asked& asked, Fields fields, std::int64_t choices);
  void send_error(http::Reply& reply, const std::exception& thrown) const;
  static void send_json(http::Reply& reply, const Json& object);

  std::string only_model() const;
  // Those of runs that have a checkpoint. On the files thread.
  Json model_json(const ServedRun& run);
  Json models();

  void begin_events(const Asked& asked);
  void tell_watchers();

  // On the compute thread.
  bool goes_on(const std::function<bool()>& stops);
  bool advance();
  void publish_readings();
  std::string metrics_text() const;

  ServeOptions options_;
  std::function<void(const std::string&)> note_;
  RunCatalog catalog_;
  Quota quota_;
  ServerMetrics metrics_;
  ComputeLoop loop_;
  ServedModels models_;
  ProbeCache probes_;
  JobSurroundings surroundings_;
  std::vector<std::weak_ptr<DecodingJob>> jobs_;  // that may come to be late
  std::chrono::steady_clock::time_point looked_ = {};

  // On the files thread, but for its start.
  RunPages pages_;
  RunWatcher watcher_;
  std::map<std::uint64_t, std::shared_ptr<http::Reply>> watching_;
  int ticks_ = 0;
  std::map<std::string, std::pair<FileStamp, Json>> described_;

  mutable std::mutex readings_mutex_;
  std::vector<ServerMetrics::Reading> readings_;
  std::map<std::string, std::string> problems_;  // of models, by name
  std::vector<std::string> loaded_;

  Router router_;
  std::atomic<bool> stopping_ = false;
  std::chrono::steady_clock::time_point stopped_at_ = {};
  std::unique_ptr<http::Server> http_;
  std::unique_ptr<FileWorker> files_;
};

}  // namespace routing
