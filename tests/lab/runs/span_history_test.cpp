#include "lab/runs/span_history.h"

#include "lab/runs/span_figure.h"
#include "routing/core/error.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

namespace routing::span_history_test {
namespace {

const std::string kLines =
    R"({"step":10,"train_loss_nats":4.0,"spans":{"layer 0":{"2":1.5,"3":0.0},"layer 1":{"2":7.25,"3":3.0}}}
{"step":15,"eval_loss_nats":3.0}
{"step":20,"train_loss_nats":2.0,"spans":{"layer 0":{"2":2.5,"3":0.0},"layer 1":{"2":40.0,"3":2.0}}}
)";

class SpanHistory : public testing::Test {
 protected:
  std::vector<SpanSeries> history_of(const std::string& lines) const {
    std::ofstream(folder_ / "metrics.jsonl") << lines;
    return read_span_history(folder_ / "metrics.jsonl");
  }
  TemporaryFolder folder_;
};

TEST_F(SpanHistory, EveryHeadHasItsSeries) {
  const std::vector<SpanSeries> heads = history_of(kLines);
  ASSERT_EQ(heads.size(), 4U);
  EXPECT_EQ(heads[1].attention, "layer 0");
  EXPECT_EQ(heads[1].head, 3);
  EXPECT_EQ(heads[2].attention, "layer 1");
  EXPECT_EQ(heads[2].head, 2);
  EXPECT_EQ(heads[2].steps, (std::vector<double>{10.0, 20.0}));
  EXPECT_EQ(heads[2].spans, (std::vector<double>{7.25, 40.0}));
}

TEST_F(SpanHistory, ALogWithoutSpansIsEmptyAndAForeignOneAnError) {
  EXPECT_TRUE(history_of("{\"step\":1}\n").empty());
  for (const char* line : {R"({"spans":{"layer 0":{"0":1}}})", R"({"step":1,"spans":{"layer 0":{"first":1}}})",
                           R"({"step":1,"spans":{"layer 0":{"0":"long"}}})"}) {
    EXPECT_NE(message_of<FileError>([&] { history_of(std::string(line) + "\n"); }).find("is not the metrics.jsonl"),
              std::string::npos)
        << line;
  }
  EXPECT_FALSE(message_of<FileError>([&] { read_span_history(folder_ / "nothing"); }).empty());
}

TEST_F(SpanHistory, BarsStandByLayerUnderTheLimit) {
  const SpanLayout layout = span_layout({.title = "spans", .heads = history_of(kLines), .limit = 64.0});
  EXPECT_EQ(layout.layers, (std::vector<std::string>{"layer 0", "layer 1"}));
  EXPECT_EQ(layout.layer_of, (std::vector<std::size_t>{0, 0, 1, 1}));
  ASSERT_EQ(layout.x.size(), 4U);
  EXPECT_GT(layout.x[2] - layout.x[1], layout.x[1] - layout.x[0]) << "a gap between layers";
  EXPECT_GT(layout.x[1], layout.x[0] + layout.bar) << "no bar covers another";
  EXPECT_LT(layout.x[3] + layout.bar, layout.over_steps.left);
  EXPECT_EQ(layout.over_steps.y.low, 0.0);
  EXPECT_TRUE(layout.shows_limit);
  EXPECT_GE(layout.over_steps.y.high, 64.0) << "the limit can be seen";
  EXPECT_FALSE(span_layout({.title = "far", .heads = history_of(kLines), .limit = 1000.0}).shows_limit);
  EXPECT_LT(layout.over_steps.right, layout.width);
}

TEST_F(SpanHistory, FiguresAreWrittenAndImpossibleOnesRefused) {
  const SpanFigure figure{.title = "spans", .heads = history_of(kLines), .limit = 64.0};
  write_span_figure(figure, folder_ / "spans.svg");
  std::ifstream file(folder_ / "spans.svg");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_NE(text.find("<svg"), std::string::npos);
  EXPECT_NE(message_of<InputError>([] { span_layout({.title = "none", .heads = {}}); }).find("0 heads"),
            std::string::npos);
  EXPECT_NE(message_of<InputError>([] {
              span_layout({.title = "odd", .heads = {{.attention = "layer 0", .steps = {1.0}}}});
            }).find("layer 0 head 0 has 0 spans and 1 steps"),
            std::string::npos);
}

}  // namespace
}  // namespace routing::span_history_test
