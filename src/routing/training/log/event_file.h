// Scalars for TensorBoard: an event file, written without TensorFlow or protobuf.
//
//   record = u64 length | u32 masked CRC-32C of the length | bytes of an Event | u32 masked CRC-32C of the bytes
//   masked(c) = ((c >> 15) | (c << 17)) + 0xA282EAD8
#pragma once

#include "routing/core/files.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace routing {

// Seconds since 1970, as TensorBoard wants them.
double wall_seconds();

// One file of one process; TensorBoard shows all files of the folder as one run.
class EventFile {
 public:
  // Creates <folder>/events.out.tfevents.<seconds>.<host>.<process>, and with ".1", ".2", … if that exists. The folder
  // must exist. A resumed run gives the first step that it will write again: TensorBoard then forgets what older files
  // say of this step and later ones.
  explicit EventFile(const std::filesystem::path& folder, double wall_time,
                     std::optional<std::int64_t> first_step = std::nullopt);

  // Hands over what is left, silently: call flush() to hear of a full disk.
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  // tag is like "train/loss"; step >= 0. Values are stored as float. Kept in memory until flush() or 64 KiB.
  void add_scalar(std::string_view tag, double value, std::int64_t step, double wall_time);

  // Writes everything added so far. After a FileError the bytes are still there, and the next flush tries again.
  void flush();

  // The file that was made.
  const std::filesystem::path& path() const { return file_.path(); }

 private:
  void add_record(const std::string& event);

  AppendFile file_;
  std::string waiting_;
};

}  // namespace routing
