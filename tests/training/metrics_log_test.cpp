#include "routing/training/log/metrics_log.h"

#include "routing/core/error.h"
#include "support/file_size_limit.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace routing::metrics_log_test {
namespace {

TEST(MetricsLog, WritesOneObjectALineInTheOrderOfItsKeys) {
  const TemporaryFolder folder;
  MetricsLog log(folder / "metrics.jsonl");
  log.append({{"step", 1}, {"train/loss_bits_per_byte", 2.5}, {"note", "two\nlines"}});
  EXPECT_EQ(read_file(log.path()), "{\"step\":1,\"train/loss_bits_per_byte\":2.5,\"note\":\"two\\nlines\"}\n");
  log.append({{"val", std::numeric_limits<double>::quiet_NaN()}, {"step", 2}, {"text", "\xFF"}});
  EXPECT_EQ(read_file(log.path()).substr(read_file(log.path()).find('\n') + 1),
            "{\"val\":null,\"step\":2,\"text\":\"\xEF\xBF\xBD\"}\n");
}

TEST(MetricsLog, GoesOnAtTheEndOfAnOlderLog) {
  const TemporaryFolder folder;
  MetricsLog(folder / "a").append({{"step", 1}});
  MetricsLog(folder / "a").append({{"step", 2}});
  EXPECT_EQ(read_file(folder / "a"), "{\"step\":1}\n{\"step\":2}\n");
}

TEST(MetricsLog, DropsALineThatWasTornByAKilledProcess) {
  const TemporaryFolder folder;
  write_file_at_once(folder / "a", "{\"step\":1}\n{\"step\":2,\"lo");
  EXPECT_EQ(read_metrics(folder / "a").size(), 1U);
  MetricsLog(folder / "a").append({{"step", 2}});
  EXPECT_EQ(read_file(folder / "a"), "{\"step\":1}\n{\"step\":2}\n");
  write_file_at_once(folder / "b", "{\"st");
  MetricsLog(folder / "b").append({{"step", 1}});
  EXPECT_EQ(read_file(folder / "b"), "{\"step\":1}\n");
}

TEST(MetricsLog, CutBackKeepsOnlyWholeLinesUpToTheStep) {
  const TemporaryFolder folder;
  MetricsLog log(folder / "a");
  for (const int step : {0, 10, 20, 20, 30, 15}) log.append({{"step", step}});
  // Written by others: without a step, with one that is no whole number or no count, not JSON, torn.
  AppendFile(folder / "a").write("{\"step\":18446744073709551615}\n{\"step\":-1}\n");
  AppendFile(folder / "a").write("{\"epoch\":1}\n{\"step\":1.5}\n[1]\nnonsense\n\n{\"step\":2}");
  log.cut_back_to(20);
  const std::string kept = "{\"step\":0}\n{\"step\":10}\n{\"step\":20}\n{\"step\":20}\n{\"step\":15}\n";
  EXPECT_EQ(read_file(folder / "a"), kept);
  // The same log writes to the new file.
  log.append({{"step", 21}});
  EXPECT_EQ(read_file(folder / "a"), kept + "{\"step\":21}\n");
  EXPECT_EQ(folder.num_entries(), 1U);
}

TEST(MetricsLog, CutBackKeepsTheVeryBytesOfItsLines) {
  const TemporaryFolder folder;
  const std::string line = "{ \"step\" : 1, \"x\": 1.50 }\n";
  write_file_at_once(folder / "a", line + "{\"step\":9}\n");
  MetricsLog(folder / "a").cut_back_to(1);
  EXPECT_EQ(read_file(folder / "a"), line);
  MetricsLog(folder / "new").cut_back_to(5);
  EXPECT_EQ(read_file(folder / "new"), "");
}

TEST(MetricsLog, ALineWithoutStepIsRefused) {
  const TemporaryFolder folder;
  MetricsLog log(folder / "a");
  EXPECT_EQ(message_of<InputError>([&] {
              log.append({{"loss", 1}});
            }),
            log.path().string() + ": a line needs a whole number \"step\" from 0 on, but is {\"loss\":1}");
  EXPECT_THROW(log.append({{"step", -1}}), InputError);
  EXPECT_THROW(log.append({{"step", 1.5}}), InputError);
  EXPECT_THROW(log.append(3), InputError);
  EXPECT_EQ(read_file(folder / "a"), "");
}

TEST(MetricsLog, AFullDiskLeavesWholeLinesAndNamesPathAndReason) {
  const TemporaryFolder folder;
  MetricsLog log(folder / "a");
  log.append({{"step", 1}, {"text", std::string(600, 'x')}});
  const std::string before = read_file(folder / "a");
  const std::string reason = (folder / "a").string() + ": cannot be written: File too large; ";
  {
    const FileSizeLimit limit(1000);
    const std::string message = message_of<FileError>([&] {
      log.append({{"step", 2}, {"text", std::string(600, 'y')}});
    });
    EXPECT_EQ(message.rfind(reason, 0), 0U) << message;
    EXPECT_EQ(read_file(folder / "a"), before);
  }
  log.append({{"step", 2}});
  {
    const FileSizeLimit limit(100);
    const std::string message = message_of<FileError>([&] { log.cut_back_to(1); });
    EXPECT_EQ(message.rfind(reason, 0), 0U) << message;
  }
  EXPECT_EQ(read_file(folder / "a"), before + "{\"step\":2}\n");
  EXPECT_EQ(folder.num_entries(), 1U);
  log.append({{"step", 3}});
  EXPECT_EQ(read_metrics(folder / "a").size(), 3U);
}

TEST(ReadMetrics, ReturnsTheObjectsAndNamesABrokenLine) {
  const TemporaryFolder folder;
  MetricsLog log(folder / "a");
  log.append({{"step", 1}, {"loss", 0.1}});
  log.append({{"step", 2}, {"loss", nullptr}});
  const auto objects = read_metrics(folder / "a");
  ASSERT_EQ(objects.size(), 2U);
  EXPECT_EQ(objects[0]["loss"].get<double>(), 0.1);
  EXPECT_TRUE(objects[1]["loss"].is_null());
  AppendFile(folder / "a").write("{\"step\":3\n");
  EXPECT_EQ(message_of<FileError>([&] { read_metrics(folder / "a"); }),
            (folder / "a").string() + ": line 3 is not a JSON object; remove the line");
  EXPECT_THROW(read_metrics(folder / "missing"), FileError);
}

}  // namespace
}  // namespace routing::metrics_log_test
