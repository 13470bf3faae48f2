#include "routing/training/log/event_file.h"

#include "routing/core/error.h"
#include "support/file_size_limit.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <regex>
#include <vector>

namespace routing::event_file_test {
namespace {

namespace fs = std::filesystem;

// A reader of its own, from the description of the format: the checksum bit by bit, messages as lists of fields.
std::uint32_t plain_masked_crc(const std::string& bytes) {
  std::uint32_t rest = 0xFFFFFFFFU;
  for (const char byte : bytes) {
    rest ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) rest = (rest & 1U) != 0 ? (rest >> 1U) ^ 0x82F63B78U : rest >> 1U;
  }
  rest = ~rest;
  return ((rest >> 15U) | (rest << 17U)) + 0xA282EAD8U;
}

template <class Value>
Value value_at(const std::string& bytes, std::size_t at) {
  Value value{};
  std::memcpy(&value, bytes.substr(at, sizeof(Value)).data(), sizeof(Value));
  return value;
}

std::vector<std::string> records_of(const std::string& bytes) {
  std::vector<std::string> records;
  std::size_t at = 0;
  while (at < bytes.size()) {
    const auto length = value_at<std::uint64_t>(bytes, at);
    EXPECT_EQ(value_at<std::uint32_t>(bytes, at + 8), plain_masked_crc(bytes.substr(at, 8)));
    records.push_back(bytes.substr(at + 12, length));
    EXPECT_EQ(records.back().size(), length);
    EXPECT_EQ(value_at<std::uint32_t>(bytes, at + 12 + length), plain_masked_crc(records.back()));
    at += 16 + length;
  }
  EXPECT_EQ(at, bytes.size());
  return records;
}

// Field number to the raw bytes of its value; varints as eight bytes.
std::map<int, std::string> fields_of(const std::string& message) {
  std::map<int, std::string> fields;
  std::size_t at = 0;
  const auto varint = [&] {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(message.at(at++));
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.size()) {
    const std::uint64_t key = varint();
    std::string value;
    if (key % 8 == 0) {
      const std::uint64_t number = varint();
      value.assign(reinterpret_cast<const char*>(&number), 8);
    } else {
      const std::size_t size = key % 8 == 1 ? 8 : key % 8 == 5 ? 4 : varint();
      value = message.substr(at, size);
      at += size;
    }
    EXPECT_TRUE(fields.emplace(static_cast<int>(key / 8), value).second);
  }
  return fields;
}

struct Event {
  double wall_time = 0.0;
  std::int64_t step = 0;
  std::map<int, std::string> fields;
};

std::vector<Event> events_of(const fs::path& path) {
  std::vector<Event> events;
  for (const std::string& record : records_of(read_file(path))) {
    const auto fields = fields_of(record);
    events.push_back({value_at<double>(fields.at(1), 0), value_at<std::int64_t>(fields.at(2), 0), fields});
  }
  return events;
}

// Tag and value of a scalar.
std::pair<std::string, float> scalar_of(const Event& event) {
  const auto value = fields_of(fields_of(event.fields.at(5)).at(1));
  EXPECT_EQ(value.size(), 2U);
  return {value.at(1), value_at<float>(value.at(2), 0)};
}

TEST(EventFile, BeginsWithTheVersionWorkedByHand) {
  const TemporaryFolder folder;
  const EventFile file(folder.path(), 2.0);
  const std::string event(
      "\x09\0\0\0\0\0\0\0\x40\x10\0\x1A\x0D"
      "brain.Event:2",
      26);
  const std::string bytes = read_file(file.path());
  ASSERT_EQ(bytes.size(), 8U + 4 + 26 + 4);
  EXPECT_EQ(bytes.substr(0, 8), std::string("\x1A\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(bytes.substr(12, 26), event);
}

TEST(EventFile, HoldsEveryScalarWithTagStepAndTime) {
  const TemporaryFolder folder;
  EventFile file(folder.path(), 1700000000.5);
  file.add_scalar("train/loss", 2.25, 0, 1700000001.0);
  file.add_scalar("train/tokens_per_sec", -1e30, 300, 1700000002.25);
  // Longer than 127 letters: the lengths take two bytes.
  file.add_scalar(std::string(200, 't'), 0.1, std::int64_t{1} << 40, 1700000003.0);
  EXPECT_EQ(events_of(file.path()).size(), 1U);  // the rest waits
  file.flush();
  const std::vector<Event> events = events_of(file.path());
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[0].wall_time, 1700000000.5);
  EXPECT_EQ(events[0].fields.at(3), "brain.Event:2");
  EXPECT_EQ(events[1].wall_time, 1700000001.0);
  EXPECT_EQ(events[1].step, 0);
  EXPECT_EQ(scalar_of(events[1]), std::pair("train/loss" + std::string(), 2.25F));
  EXPECT_EQ(events[2].wall_time, 1700000002.25);
  EXPECT_EQ(events[2].step, 300);
  EXPECT_EQ(scalar_of(events[2]), std::pair("train/tokens_per_sec" + std::string(), -1e30F));
  EXPECT_EQ(events[3].step, std::int64_t{1} << 40);
  EXPECT_EQ(scalar_of(events[3]), std::pair(std::string(200, 't'), 0.1F));
}

TEST(EventFile, IsNamedByTimeHostAndProcess) {
  const TemporaryFolder folder;
  const EventFile first(folder.path(), 12345.9);
  const EventFile second(folder.path(), 12345.9);
  std::array<char, 256> host{};
  ASSERT_EQ(::gethostname(host.data(), host.size() - 1), 0);
  const std::string name =
      "events.out.tfevents.0000012345." + std::string(host.data()) + "." + std::to_string(::getpid());
  EXPECT_EQ(first.path(), folder / name);
  EXPECT_EQ(second.path(), folder / (name + ".1"));
}

// TensorBoard drops what it has seen of the step of a START and later ones.
TEST(EventFile, AResumedRunSaysWhereItStarts) {
  const TemporaryFolder folder;
  const EventFile file(folder.path(), 5.0, 341);
  const std::vector<Event> events = events_of(file.path());
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].fields.at(3), "brain.Event:2");
  EXPECT_EQ(events[1].step, 341);
  EXPECT_EQ(events[1].wall_time, 5.0);
  const auto session = fields_of(events[1].fields.at(7));
  ASSERT_EQ(session.size(), 1U);
  EXPECT_EQ(value_at<std::uint64_t>(session.at(1), 0), 1U);
}

TEST(EventFile, WritesWhatIsLeftAtItsEndAndWhenMuchWaits) {
  const TemporaryFolder folder;
  fs::path path;
  {
    EventFile file(folder.path(), 5.0);
    path = file.path();
    file.add_scalar("a", 1.0, 1, 6.0);
  }
  EXPECT_EQ(events_of(path).size(), 2U);
  EventFile file(folder.path(), 5.0);
  for (int step = 0; step < 3000; ++step) file.add_scalar("a", 1.0, step, 6.0);
  EXPECT_GT(events_of(file.path()).size(), 1000U);
  EXPECT_LT(events_of(file.path()).size(), 3001U);
}

TEST(EventFile, AFullDiskLosesNothingThatIsFlushedLater) {
  const TemporaryFolder folder;
  EventFile file(folder.path(), 5.0);
  for (int step = 0; step < 100; ++step) file.add_scalar("a", 1.0, step, 6.0);
  {
    const FileSizeLimit limit(1000);
    const std::string message = message_of<FileError>([&] { file.flush(); });
    EXPECT_EQ(message.rfind(file.path().string() + ": cannot be written: File too large; ", 0), 0U) << message;
    EXPECT_EQ(events_of(file.path()).size(), 1U);
  }
  file.flush();
  EXPECT_EQ(events_of(file.path()).size(), 101U);
}

TEST(EventFile, RefusesNegativeStepsAndMissingFolders) {
  const TemporaryFolder folder;
  EventFile file(folder.path(), 5.0);
  EXPECT_EQ(message_of<InputError>([&] { file.add_scalar("loss", 1.0, -1, 6.0); }),
            "scalar loss: step is -1, but steps count from 0");
  EXPECT_THROW(EventFile(folder.path(), 5.0, -1), InputError);
  EXPECT_THROW(EventFile(folder / "missing", 5.0), FileError);
}

TEST(WallSeconds, IsAfter2020AndDoesNotStandStill) {
  const double first = wall_seconds();
  EXPECT_GT(first, 1577836800.0);
  ::usleep(2000);
  EXPECT_GT(wall_seconds(), first);
}

}  // namespace
}  // namespace routing::event_file_test
