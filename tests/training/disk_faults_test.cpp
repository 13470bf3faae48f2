// A disk that fails at any one call below a training (support/disk_faults.h): the training goes on as if nothing had
// been, or ends with an error that names the file and the reason; resumed on a sound disk it ends with the same bytes.
// Calls of every kind fail here, each in one way; scripts/fault-files lets every call fail in all ways, and in the
// program.
#include "support/disk_faults.h"

#include "routing/core/error.h"
#include "routing/core/files.h"
#include "training/run_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <vector>

namespace routing::disk_faults_test {
namespace {

using disk_faults::Call;

// With metrics, events, samples, clusters, several checkpoints, of which old ones are removed.
class FaultyDisk : public Training {
 protected:
  void SetUp() override {
    // In memory where there is such a place: real disks take longer for their syncs than all of the training.
    const char* const before = std::getenv("TMPDIR");
    const std::string folder = before == nullptr ? "" : before;
    if (fs::is_directory("/dev/shm")) ::setenv("TMPDIR", "/dev/shm", 1);
    Training::SetUp();
    if (before == nullptr) {
      ::unsetenv("TMPDIR");
    } else {
      ::setenv("TMPDIR", folder.c_str(), 1);
    }
    config_.train.steps = 4;
    config_.train.log_every = 1;
    config_.train.eval_every = 2;
    config_.train.eval_tokens = 40;
    config_.train.checkpoint_every = 1;
    config_.train.keep_checkpoints = 1;
    config_.train.sample_every = 3;
    config_.train.sample_tokens = 4;
    config_.train.clusters_every = 2;
  }

  std::string run_folder(const std::string& run) const { return (folder_ / run).string(); }

  // As `resume auto` does.
  void train_on(const std::string& run) { train(run, RunDirectory(folder_ / run).exists()); }

  std::vector<Call> calls_of(const std::string& run) {
    disk_faults::begin({.below = run_folder(run)});
    train_on(run);
    return disk_faults::end();
  }

  // What the training ended with; nothing if it went on.
  std::optional<std::string> train_with(const std::string& run, const disk_faults::Orders& orders) {
    disk_faults::begin(orders);
    std::optional<std::string> message;
    try {
      train_on(run);
    } catch (const FileError& error) {
      message = error.what();
    } catch (...) {
      disk_faults::end();
      throw;
    }
    disk_faults::end();
    return message;
  }
};

struct Way {
  const char* name;
  int reason;
  bool lasts;
};
constexpr Way kFull{"full for good", ENOSPC, true};
constexpr Way kFault{"a fault", EIO, false};
constexpr Way kInterrupted{"an interruption", EINTR, false};
constexpr Way kShort{"half a write", 0, false};

// What one call is among many of its kind: its name, and its file without numbers.
std::string kind_of(const Call& call) {
  std::string kind = call.name + " " + fs::path(call.path).filename().string();
  std::erase_if(kind, [](char letter) { return letter >= '0' && letter <= '9'; });
  return kind;
}

// A different way at each call of a kind. The system interrupts neither renames nor mkdir, and only writes are short.
Way way_of(std::size_t number, const Call& call) {
  const bool is_name = call.name == "rename" || call.name == "mkdir";
  const bool writes = call.name == "write";
  if (number % 4 == 2 && !is_name) return kInterrupted;
  if (number % 4 == 3 && writes) return kShort;
  return number % 2 == 0 ? kFull : kFault;
}

TEST_F(FaultyDisk, ACallOfAnyKindMayFailAndTheRunEndsWithTheSameBytes) {
  const std::vector<Call> calls = calls_of("whole");
  ASSERT_GT(calls.size(), 60U);
  std::map<std::string, int> ended;
  std::map<std::string, int> kinds;
  for (std::size_t number = 1; number <= calls.size(); ++number) {
    const Call& call = calls[number - 1];
    // Of many calls of a kind the first, the second and some of the others.
    const int before = kinds[kind_of(call)]++;
    if (before > 1 && number % 7 != 0) continue;
    const Way way = way_of(number, call);
    const std::string what = way.name + std::string(" at call ") + std::to_string(number) + ", " + call.name + " " +
                             call.path.substr(folder_.string().size());
    const std::string run = "run-" + std::to_string(number);
    const auto message = train_with(run, {.below = run_folder(run),
                                          .call = static_cast<std::int64_t>(number),
                                          .reason = way.reason,
                                          .lasts = way.lasts});
    if (message) {
      ++ended[way.name];
      EXPECT_NE(message->find(run_folder(run)), std::string::npos) << what << ": " << *message;
      EXPECT_NE(message->find(std::generic_category().message(way.reason)), std::string::npos)
          << what << ": " << *message;
    }
    // A write that was cut short or interrupted is done again; who is interrupted elsewhere tries again as well.
    if (way.reason == 0 || way.reason == EINTR) {
      EXPECT_EQ(message, std::nullopt) << what;
    }
    train_on(run);
    expect_same_end("whole", run);
    EXPECT_EQ(read_file(folder_ / "whole/clusters.jsonl"), read_file(folder_ / run / "clusters.jsonl")) << what;
    EXPECT_EQ(read_file(folder_ / "whole/samples/step-00000003.txt"),
              read_file(folder_ / run / "samples/step-00000003.txt"))
        << what;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / run)) {
      EXPECT_EQ(entry.path().string().find(".part"), std::string::npos) << what << " left " << entry.path();
    }
    if (HasFailure()) FAIL() << what;
    fs::remove_all(folder_ / run);
  }
  EXPECT_GT(ended["full for good"], 10);
  EXPECT_GT(ended["a fault"], 10);
}

// What a power failure leaves is what was synced: bytes of a file before the name that makes them count, and the name
// itself before anything relies on it.
TEST_F(FaultyDisk, FilesAreSyncedBeforeTheirNamesAndNamesBeforeTheNextFile) {
  const std::vector<Call> calls = calls_of("run");
  std::set<std::string> unsynced;              // files with bytes that are not safe
  std::map<std::string, std::string> waiting;  // names that are not safe, by the folder that has them
  int renames = 0;
  for (const Call& call : calls) {
    const std::string folder = fs::path(call.name == "rename" ? call.other : call.path).parent_path();
    if (call.name == "write" || call.name == "pwrite") unsynced.insert(call.path);
    if (call.name == "fsync") {
      unsynced.erase(call.path);
      waiting.erase(call.path);
    }
    if (call.name != "rename") continue;
    ++renames;
    for (const std::string& file : unsynced) {
      EXPECT_FALSE(file == call.path || file.starts_with(call.path + "/"))
          << file << " has a name before its bytes are safe";
    }
    EXPECT_EQ(waiting.count(folder), 0U) << waiting[folder] << " is not safe when " << call.other << " comes";
    // A checkpoint's folder is named when all names in it are safe.
    for (const auto& [other, name] : waiting) EXPECT_FALSE(other == call.path) << name;
    waiting[folder] = call.other;
  }
  EXPECT_GT(renames, 15);
  EXPECT_TRUE(waiting.empty()) << waiting.begin()->second << " is not safe at the end";
  // DONE comes last of a checkpoint, and its folder's own name is safe by then.
  const auto place = [&](const std::string& name, const std::string& ending) {
    const auto found = std::find_if(calls.begin(), calls.end(), [&](const Call& call) {
      return call.name == name && (call.path.ends_with(ending) || call.other.ends_with(ending));
    });
    EXPECT_NE(found, calls.end()) << name << " " << ending;
    return found - calls.begin();
  };
  EXPECT_LT(place("rename", "/checkpoints/step-00000001"), place("fsync", "/checkpoints"));
  EXPECT_LT(place("fsync", "/checkpoints"), place("rename", "/step-00000001/DONE"));
}

// After a power failure a run is still there, and so is what its last checkpoint relies on: logs, whose files are not
// renamed, with their lines, and folders.
TEST_F(FaultyDisk, NewFoldersAndLogsWithTheirLinesAreSafeByTheNextCheckpoint) {
  disk_faults::begin({.below = folder_.string()});
  train_on("above/run");
  const std::vector<Call> calls = disk_faults::end();
  std::map<std::string, std::string> waiting;  // by the folder that has them
  std::set<std::string> lines;                 // logs with lines that are not safe
  int checkpoints = 0;
  for (const Call& call : calls) {
    const bool is_log = call.path.ends_with(".jsonl");
    if (is_log && call.name == "write") lines.insert(call.path);
    if ((is_log && call.name == "create") || (call.name == "mkdir" && !call.path.ends_with(".partial"))) {
      waiting[fs::path(call.path).parent_path()] = call.path;
    }
    if (call.name == "fsync") {
      waiting.erase(call.path);
      lines.erase(call.path);
    }
    if (call.name != "rename" || !call.other.ends_with("/DONE")) continue;
    ++checkpoints;
    for (const auto& [folder, name] : waiting) ADD_FAILURE() << name << " is not safe when " << call.other << " comes";
    for (const std::string& log : lines)
      ADD_FAILURE() << "lines of " << log << " are not safe when " << call.other << " comes";
  }
  EXPECT_GE(checkpoints, 4);
}

}  // namespace
}  // namespace routing::disk_faults_test
