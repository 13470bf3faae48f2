// The longest beginning among many, against plain comparisons with each.
#include "routing/generation/prefix_tree.h"

#include "routing/core/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

namespace routing::prefix_tree_test {
namespace {

using Ids = std::vector<std::int32_t>;

std::int64_t shared_length(const Ids& one, const Ids& other) {
  return std::mismatch(one.begin(), one.end(), other.begin(), other.end()).first - one.begin();
}

TEST(PrefixTree, FindsTheLongestBeginningByHand) {
  PrefixTree tree;
  EXPECT_EQ(tree.match(Ids{1, 2}).entry, PrefixTree::kNone);
  const PrefixTree::Entry abc = tree.insert(Ids{1, 2, 3});
  const PrefixTree::Entry a = tree.insert(Ids{1});
  const PrefixTree::Entry abd = tree.insert(Ids{1, 2, 4, 5});
  EXPECT_EQ(tree.insert(Ids{1, 2, 3}), abc) << "it is there already";
  EXPECT_EQ(tree.size(), 3);
  const auto expect = [&](const Ids& tokens, PrefixTree::Entry entry, std::int64_t length, std::int64_t shared) {
    const PrefixTree::Match match = tree.match(tokens);
    EXPECT_EQ(match.entry, entry);
    EXPECT_EQ(match.tokens, length);
    EXPECT_EQ(match.shared, shared);
  };
  expect({1, 2, 3, 9}, abc, 3, 3);
  expect({1, 2, 4}, a, 1, 3);
  expect({1, 2, 4, 5}, abd, 4, 4);
  expect({1, 2, 9}, a, 1, 2);
  expect({2}, PrefixTree::kNone, 0, 0);
  expect({}, PrefixTree::kNone, 0, 0);
  const PrefixTree::Entry nothing = tree.insert(Ids{});
  expect({2}, nothing, 0, 0);
  tree.erase(nothing);
  expect({2}, PrefixTree::kNone, 0, 0);
  tree.erase(a);
  expect({1, 2, 9}, PrefixTree::kNone, 0, 2);
  tree.erase(abc);
  expect({1, 2, 3}, PrefixTree::kNone, 0, 2);
  expect({1, 2, 4, 5, 6}, abd, 4, 4);
  tree.erase(abd);
  expect({1, 2, 4, 5, 6}, PrefixTree::kNone, 0, 0);
  EXPECT_EQ(tree.size(), 0);
  EXPECT_EQ(tree.bytes(), 0) << "nothing is left behind";
}

// Entries come and go; three letters, so that many begin alike.
TEST(PrefixTree, EqualsPlainComparisonsWhateverComesAndGoes) {
  RandomStream random(5, "prefix tree");
  const auto random_ids = [&] {
    Ids ids(random.below(12));
    for (std::int32_t& id : ids) id = static_cast<std::int32_t>(random.below(3));
    return ids;
  };
  PrefixTree tree;
  std::map<Ids, PrefixTree::Entry> entries;
  for (int round = 0; round < 20'000; ++round) {
    if (random.below(100) < 55) {
      const Ids ids = random_ids();
      const PrefixTree::Entry entry = tree.insert(ids);
      const auto known = entries.find(ids);
      ASSERT_TRUE(known == entries.end() || known->second == entry) << "numbers stay";
      entries[ids] = entry;
    } else if (!entries.empty()) {
      auto gone = entries.begin();
      std::advance(gone, random.below(static_cast<std::uint32_t>(entries.size())));
      tree.erase(gone->second);
      entries.erase(gone);
    }
    ASSERT_EQ(tree.size(), static_cast<std::int64_t>(entries.size()));
    const Ids asked = random_ids();
    PrefixTree::Match expected;
    for (const auto& [ids, entry] : entries) {
      const std::int64_t shared = shared_length(ids, asked);
      expected.shared = std::max(expected.shared, shared);
      const bool whole = shared == static_cast<std::int64_t>(ids.size());
      if (!whole || (expected.entry != PrefixTree::kNone && shared <= expected.tokens)) continue;
      expected.entry = entry;
      expected.tokens = shared;
    }
    const PrefixTree::Match match = tree.match(asked);
    ASSERT_EQ(match.entry, expected.entry);
    ASSERT_EQ(match.tokens, expected.tokens);
    ASSERT_EQ(match.shared, expected.shared);
  }
  for (const auto& [ids, entry] : entries) tree.erase(entry);
  EXPECT_EQ(tree.bytes(), 0);
}

TEST(PrefixTree, SharedTokensStandThereOnce) {
  PrefixTree tree;
  Ids ids(1000, 7);
  tree.insert(ids);
  const std::int64_t one = tree.bytes();
  EXPECT_GE(one, 4000);
  EXPECT_LE(one, 4000 + PrefixTree::kBytesPerEntry);
  ids.back() = 8;
  tree.insert(ids);
  EXPECT_LE(tree.bytes(), one + 4 + PrefixTree::kBytesPerEntry);
}

// Each is the beginning of the next: a chain as deep as there are entries.
TEST(PrefixTree, AChainOfManyEntriesIsNoProblem) {
  PrefixTree tree;
  Ids ids;
  std::vector<PrefixTree::Entry> entries;
  for (std::int32_t i = 0; i < 100'000; ++i) {
    ids.push_back(i);
    if (i % 10 == 9 && i < 30'000) entries.push_back(tree.insert(ids));
  }
  EXPECT_EQ(tree.match(ids).entry, entries.back());
  EXPECT_EQ(tree.match(ids).tokens, 30'000);
}

}  // namespace
}  // namespace routing::prefix_tree_test
