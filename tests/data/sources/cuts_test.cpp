#include "routing/data/sources/cuts.h"

#include "routing/core/error.h"
#include "support/message_of.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace routing::cuts_test {
namespace {

// A text in the pieces it is given in, a document each.
class Pieces : public TextSource {
 public:
  explicit Pieces(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {
    facts_.parts = {{.name = "train", .files = {"text"}}};
  }
  const SourceFacts& facts() const override { return facts_; }
  void read(std::string_view, const TextSink& sink) const override {
    for (const std::string& piece : pieces_) sink(piece, true);
  }

 private:
  SourceFacts facts_;
  std::vector<std::string> pieces_;
};

// Images of one pixel whose values are their number.
class Numbers : public ImageSource {
 public:
  const SourceFacts& facts() const override { return facts_; }
  ImageShape shape() const override { return {1, 1}; }
  std::int64_t images(std::string_view) const override { return 10; }
  void read(std::string_view, const ImageSink& sink) const override {
    for (std::uint8_t i = 0; i < 10; ++i) sink(std::vector<std::uint8_t>(3, i));
  }

 private:
  SourceFacts facts_;
};

SourceFacts with_parts(const std::vector<std::string>& names) {
  SourceFacts facts;
  for (const std::string& name : names) facts.parts.push_back({.name = name, .files = {"/data/" + name}});
  return facts;
}

CutPlan plan(const std::vector<std::string>& names, const CutRule& rule = {}) {
  const std::map<std::string, std::int64_t> sizes{{"train", 1000}, {"valid", 200}, {"test", 300}};
  return plan_cuts(
      with_parts(names), [&](const std::string& name) { return sizes.at(name); }, rule);
}

std::string text_of(const TextSource& source, std::int64_t begin, std::int64_t end) {
  std::string text;
  read_cut(source, {"train", "train", begin, end}, [&](std::string_view piece, bool) { text += piece; });
  return text;
}

TEST(Cuts, ThreePartsStayAsTheyAreAndAreNotMeasured) {
  const CutPlan whole = plan_cuts(with_parts({"train", "valid", "test"}),
                                  [](const std::string&) -> std::int64_t { throw std::logic_error("asked"); }, {});
  EXPECT_EQ(whole.note, "");
  EXPECT_EQ(whole.cuts,
            (std::vector<Cut>{
                {"train", "train", 0, kToTheEnd}, {"valid", "valid", 0, kToTheEnd}, {"test", "test", 0, kToTheEnd}}));
}

TEST(Cuts, OnePartIsCutByTheRuleWhateverItsName) {
  const CutPlan cut = plan({"test"}, {.split = "80%/10%/10%"});
  EXPECT_EQ(cut.cuts,
            (std::vector<Cut>{{"train", "test", 0, 240}, {"valid", "test", 240, 270}, {"test", "test", 270, 300}}));
  EXPECT_EQ(cut.note, "train, valid and test are cut from one piece by 80%/10%/10%");
}

TEST(Cuts, AMissingPartIsCutFromItsNeighbour) {
  EXPECT_EQ(
      plan({"train", "test"}).cuts,
      (std::vector<Cut>{{"train", "train", 0, 980}, {"valid", "train", 980, 1000}, {"test", "test", 0, kToTheEnd}}));
  EXPECT_EQ(plan({"train", "test"}).note, "valid is the last 2 % of train");
  EXPECT_EQ(
      plan({"valid", "test"}).cuts,
      (std::vector<Cut>{{"train", "valid", 0, 180}, {"valid", "valid", 180, 200}, {"test", "test", 0, kToTheEnd}}));
  EXPECT_EQ(plan({"valid", "test"}).note, "train is the first 90 % of valid");
  EXPECT_EQ(
      plan({"train", "valid"}).cuts,
      (std::vector<Cut>{{"train", "train", 0, kToTheEnd}, {"valid", "valid", 0, 100}, {"test", "valid", 100, 200}}));
}

TEST(Cuts, EvaluationWantsAllOfValid) {
  const CutPlan cut = plan({"valid", "test"}, {.train_needed = false});
  EXPECT_EQ(cut.cuts[0].end, cut.cuts[0].begin);
  EXPECT_EQ(cut.cuts[1], (Cut{"valid", "valid", 0, kToTheEnd}));
  EXPECT_EQ(cut.note, "");
}

TEST(Cuts, ATestFileAloneIsEvaluatedWhole) {
  const CutPlan cut = plan({"test"}, {.train_needed = false});
  EXPECT_EQ(cut.cuts[0].end, cut.cuts[0].begin);
  EXPECT_EQ(cut.cuts[1].end, cut.cuts[1].begin);
  EXPECT_EQ(cut.cuts[2], (Cut{"test", "test", 0, kToTheEnd}));
}

TEST(Cuts, FewImagesStillLeaveOneForValid) {
  const CutPlan two = plan_cuts(with_parts({"train", "test"}), [](const std::string&) { return std::int64_t{2}; }, {});
  EXPECT_EQ(two.cuts[0].end, 1);
  const CutPlan one = plan_cuts(with_parts({"train", "test"}), [](const std::string&) { return std::int64_t{1}; }, {});
  EXPECT_EQ(one.cuts[0].end, 1) << "train comes first";
}

TEST(Cuts, NothingForTrainIsRefused) {
  EXPECT_EQ(message_of<ConfigError>([] { plan({"valid"}, {.split = "0/100/100"}); }),
            "/data/valid: nothing is left for train under data.split 0/100/100; give train a larger share");
}

TEST(CutText, ALineBelongsToWhereItBegins) {
  const Pieces source({"one\ntwo\nthree\n"});
  EXPECT_EQ(text_bytes(source, "train"), 14);
  EXPECT_EQ(text_of(source, 0, 4), "one\n");
  EXPECT_EQ(text_of(source, 0, 5), "one\ntwo\n") << "two begins at 4";
  EXPECT_EQ(text_of(source, 5, 14), "three\n");
  EXPECT_EQ(text_of(source, 4, 8), "two\n");
  EXPECT_EQ(text_of(source, 9, 14), "");
  EXPECT_EQ(text_of(source, 0, kToTheEnd), "one\ntwo\nthree\n");
}

TEST(CutText, TwoPartsOfAnyCutHoldEveryByteOnceInAnyPieces) {
  const std::string all = "a\nbb\n\nccc\nno end";
  const std::vector<std::vector<std::string>> ways{
      {all}, {"a\n", "bb\n\n", "ccc\nno end"}, {"a\n", "bb\n", "\n", "ccc\n", "no end"}, {"", all, ""}};
  for (const auto& pieces : ways) {
    const Pieces source(pieces);
    for (std::int64_t place = 0; place <= static_cast<std::int64_t>(all.size()); ++place) {
      const std::string first = text_of(source, 0, place);
      EXPECT_EQ(first + text_of(source, place, kToTheEnd), all) << place;
      EXPECT_TRUE(first.empty() || first.ends_with('\n') || first == all) << first;
    }
  }
}

TEST(CutText, TheEndOfADocumentGoesWithItsLastLine) {
  const Pieces source({"a\nb\n", "c\n"});
  const auto ends = [&](std::int64_t begin, std::int64_t end) {
    int count = 0;
    read_cut(source, {"train", "train", begin, end}, [&](std::string_view, bool last) { count += last ? 1 : 0; });
    return count;
  };
  EXPECT_EQ(ends(0, 2), 0);
  EXPECT_EQ(ends(2, 4), 1);
  EXPECT_EQ(ends(0, kToTheEnd), 2);
}

TEST(CutImages, AreWholeAndInOrder) {
  std::vector<int> seen;
  read_cut(Numbers(), {"valid", "train", 7, 9},
           [&](std::span<const std::uint8_t> values) { seen.push_back(values[0]); });
  EXPECT_EQ(seen, (std::vector<int>{7, 8}));
}

}  // namespace
}  // namespace routing::cuts_test
