// A disk that fails where it is told to. Linked into a test program, or preloaded into any (LD_PRELOAD), this stands
// between it and the system: every call that writes below one folder has a number, and the one that is chosen fails.
// What was called is kept, so that the order of syncs and renames can be looked at.
//
// Calls  open for writing or of a folder, write, pwrite, fsync, fdatasync, ftruncate, close of what was so opened,
// rename,
//        mkdir. What the standard library writes through its own buffers (ofstream) is not seen: glibc calls itself
//        there.
//
// Preloaded it takes its orders from the environment and appends one line for each call to DISK_FAULTS_LOG:
//
//   DISK_FAULTS_BELOW    the folder
//   DISK_FAULTS_CALL     which call fails, counted from 1; 0 for none
//   DISK_FAULTS_KIND     ENOSPC, EIO, EINTR or short: of a write only the first half is taken
//   DISK_FAULTS_LASTS    1: calls after it fail too, as on a disk that stays full
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace routing::disk_faults {

struct Orders {
  std::string below;
  std::int64_t call = 0;
  int reason = 0;  // of errno; 0 is a short write
  bool lasts = false;
  std::string log = {};
};

struct Call {
  std::string name;   // "fsync"; "create" of an open that makes the file
  std::string path;   // of the file or folder; of rename the old name
  std::string other;  // of rename the new name
  bool failed = false;
};

// From now on; what was kept before is forgotten.
void begin(const Orders& orders);
// Everything since begin(); nothing fails any more.
std::vector<Call> end();

}  // namespace routing::disk_faults
