#include "serve/run_catalog.h"
#include "lab/runs/run_summary.h"
namespace routing {
RunCatalog::RunCatalog(std::vector<std::filesystem::path> served) : served_(std::move(served)) { runs_ = look(); }
bool RunCatalog::refresh() { auto now = look(); const std::lock_guard lock(mutex_); const bool changed = now != runs_; runs_ = std::move(now); return changed; }
std::vector<ServedRun> RunCatalog::runs() const { const std::lock_guard lock(mutex_); return runs_; }
std::filesystem::path RunCatalog::folder_of(const std::string& id) const { for (const auto& run : runs()) if (run.id == id) return run.folder; throw NotFoundError("there is no run " + id); }
std::string RunCatalog::without_paths(const std::string& text) const { return text; }
std::vector<ServedRun> RunCatalog::look() const { std::vector<ServedRun> all; for (const auto& folder : served_) for (const auto& run : find_runs(folder)) { const auto rel = run.lexically_relative(folder).string(); all.push_back({rel == "." || rel.empty() ? run.filename().string() : rel, run}); } return all; }
}
