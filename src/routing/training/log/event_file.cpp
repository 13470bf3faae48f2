#include "routing/training/log/event_file.h"

#include "routing/core/error.h"
#include "routing/core/hash.h"

#include <array>
#include <bit>
#include <chrono>
#include <span>
#include <unistd.h>

namespace routing {
namespace {

constexpr std::size_t kFlushBytes = 65536;

// How a field's value is laid out in a protobuf message.
enum WireType : std::uint32_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

// Field numbers of event.proto and summary.proto.
namespace field {
constexpr std::uint32_t kEventWallTime = 1;
constexpr std::uint32_t kEventStep = 2;
constexpr std::uint32_t kEventFileVersion = 3;
constexpr std::uint32_t kEventSummary = 5;
constexpr std::uint32_t kEventSessionLog = 7;
constexpr std::uint32_t kSummaryValue = 1;
constexpr std::uint32_t kValueTag = 1;
constexpr std::uint32_t kValueSimpleValue = 2;
constexpr std::uint32_t kSessionLogStatus = 1;
}  // namespace field

constexpr std::uint64_t kSessionStart = 1;

template <class Word>
void append_little_endian(std::string& bytes, Word word) {
  for (std::size_t at = 0; at < sizeof(Word); ++at) bytes += static_cast<char>((word >> (8 * at)) & 0xFFU);
}

// Seven bits per byte, lowest first; the top bit says that more follow.
void append_varint(std::string& bytes, std::uint64_t value) {
  for (; value >= 0x80U; value >>= 7U) bytes += static_cast<char>((value & 0x7FU) | 0x80U);
  bytes += static_cast<char>(value);
}

void append_key(std::string& bytes, std::uint32_t number, WireType type) {
  append_varint(bytes, (number << 3U) | type);
}

void append_text(std::string& bytes, std::uint32_t number, std::string_view text) {
  append_key(bytes, number, kLengthDelimited);
  append_varint(bytes, text.size());
  bytes += text;
}

std::string event_at(double wall_time, std::int64_t step) {
  std::string event;
  append_key(event, field::kEventWallTime, kFixed64);
  append_little_endian(event, std::bit_cast<std::uint64_t>(wall_time));
  append_key(event, field::kEventStep, kVarint);
  append_varint(event, static_cast<std::uint64_t>(step));
  return event;
}

std::uint32_t masked_crc(std::string_view bytes) {
  constexpr std::uint32_t kMask = 0xA282EAD8U;
  return std::rotr(crc32c(std::as_bytes(std::span(bytes.data(), bytes.size()))), 15) + kMask;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  std::string text = name.data();
  for (char& letter : text) {
    if (letter == '/') letter = '_';
  }
  return text;
}

std::filesystem::path free_path(const std::filesystem::path& folder, double wall_time) {
  constexpr std::size_t kSecondsDigits = 10;  // so that names sort by time
  std::string seconds = std::to_string(static_cast<std::int64_t>(wall_time));
  if (seconds.size() < kSecondsDigits) seconds.insert(0, kSecondsDigits - seconds.size(), '0');
  const std::string name = "events.out.tfevents." + seconds + "." + host_name() + "." + std::to_string(::getpid());
  std::filesystem::path path = folder / name;
  for (int count = 1; std::filesystem::exists(path); ++count) path = folder / (name + "." + std::to_string(count));
  return path;
}

}  // namespace

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

EventFile::EventFile(const std::filesystem::path& folder, double wall_time, std::optional<std::int64_t> first_step)
    : file_(free_path(folder, wall_time), AppendFile::Mode::create_new) {
  require<InputError>(!first_step || *first_step >= 0, file_.path().string(), ": the run resumes at step ",
                      first_step.value_or(0), ", but steps count from 0");
  std::string version = event_at(wall_time, 0);
  append_text(version, field::kEventFileVersion, "brain.Event:2");
  add_record(version);
  if (first_step) {
    std::string session;
    append_key(session, field::kSessionLogStatus, kVarint);
    append_varint(session, kSessionStart);
    std::string start = event_at(wall_time, *first_step);
    append_text(start, field::kEventSessionLog, session);
    add_record(start);
  }
  flush();
}

EventFile::~EventFile() {
  try {
    flush();
  } catch (const FileError&) {
    // A destructor has nobody to tell.
  }
}

void EventFile::add_scalar(std::string_view tag, double value, std::int64_t step, double wall_time) {
  require<InputError>(step >= 0, "scalar ", tag, ": step is ", step, ", but steps count from 0");
  std::string scalar;
  append_text(scalar, field::kValueTag, tag);
  append_key(scalar, field::kValueSimpleValue, kFixed32);
  append_little_endian(scalar, std::bit_cast<std::uint32_t>(static_cast<float>(value)));
  std::string summary;
  append_text(summary, field::kSummaryValue, scalar);
  std::string event = event_at(wall_time, step);
  append_text(event, field::kEventSummary, summary);
  add_record(event);
  if (waiting_.size() >= kFlushBytes) flush();
}

void EventFile::flush() {
  if (waiting_.empty()) return;
  file_.write(waiting_);
  waiting_.clear();
}

void EventFile::add_record(const std::string& event) {
  std::string length;
  append_little_endian(length, std::uint64_t{event.size()});
  waiting_ += length;
  append_little_endian(waiting_, masked_crc(length));
  waiting_ += event;
  append_little_endian(waiting_, masked_crc(event));
}

}  // namespace routing
