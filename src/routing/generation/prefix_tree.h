// Beginnings of token sequences: which of many is the longest one of a given sequence?
//
// A radix tree: an edge holds the tokens that all entries behind it have in common, so the work for a sequence is
// proportional to its own length (times the logarithm of branches where ways part), however many entries there are, and
// tokens that entries share stand there once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace routing {

class PrefixTree {
 public:
  using Entry = std::int64_t;
  static constexpr Entry kNone = -1;

  PrefixTree();

  struct Match {
    Entry entry = kNone;      // the longest entry that the tokens begin with
    std::int64_t tokens = 0;  // its length
    std::int64_t shared = 0;  // how many of the tokens are the beginning of some entry
  };
  Match match(std::span<const std::int32_t> tokens) const;
  // The number of the entry of exactly these tokens, which is there afterwards. It stays until it is erased.
  Entry insert(std::span<const std::int32_t> tokens);
  // The entry must be there.
  void erase(Entry entry);

  std::int64_t size() const { return entries_; }
  // Of its tokens and nodes; an entry has at most kBytesPerEntry beside the tokens that no other one has.
  std::int64_t bytes() const;
  static const std::int64_t kBytesPerEntry;

 private:
  // Nodes have numbers, not pointers, so that no chain of entries, however long, is destroyed recursively.
  struct Node {
    std::vector<std::int32_t> edge = {};  // tokens between the parent and this node
    std::int64_t parent = kNone;
    std::map<std::int32_t, std::int64_t> children = {};  // by the first token of their edges
    bool is_entry = false;
  };
  // How far tokens lead.
  struct Way {
    std::int64_t node = 0;     // the last one whose edge begins with what comes there
    std::size_t passed = 0;    // tokens up to the beginning of its edge
    std::size_t matching = 0;  // tokens of its edge that come
  };
  template <class Visit>
  Way follow(std::span<const std::int32_t> tokens, const Visit& visit) const;
  Node& at(std::int64_t node) { return nodes_[static_cast<std::size_t>(node)]; }
  const Node& at(std::int64_t node) const { return nodes_[static_cast<std::size_t>(node)]; }
  std::int64_t add_node(std::span<const std::int32_t> edge, std::int64_t parent);
  void remove_node(std::int64_t node);
  // The node at the end of the way, cutting an edge in two if it ends inside.
  std::int64_t cut(const Way& way);
  // Two edges in a row become one where nothing stands between them. The lower node stays.
  void join_with_child(std::int64_t node);

  std::vector<Node> nodes_;
  std::vector<std::int64_t> free_;
  std::int64_t entries_ = 0;
  std::int64_t edge_tokens_ = 0;
};

}  // namespace routing
