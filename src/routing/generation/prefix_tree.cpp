#include "routing/generation/prefix_tree.h"

#include <algorithm>
#include <utility>

namespace routing {
namespace {

// The place of a node among the children of its parent.
constexpr std::size_t kOfPlace = sizeof(std::pair<const std::int32_t, std::int64_t>) + 4 * sizeof(void*);

}  // namespace

// A node of its own, and one where it leaves the way of another.
const std::int64_t PrefixTree::kBytesPerEntry = 2 * static_cast<std::int64_t>(sizeof(Node) + kOfPlace);

PrefixTree::PrefixTree() {
  add_node({}, kNone);
}

// Calls visit(node, tokens so far) for every node whose whole edge comes, from the root on.
template <class Visit>
PrefixTree::Way PrefixTree::follow(std::span<const std::int32_t> tokens, const Visit& visit) const {
  Way way;
  for (;;) {
    const std::size_t here = way.passed + way.matching;
    visit(way.node, here);
    if (here == tokens.size()) return way;
    const auto child = at(way.node).children.find(tokens[here]);
    if (child == at(way.node).children.end()) return way;
    const std::vector<std::int32_t>& edge = at(child->second).edge;
    const auto rest = tokens.subspan(here);
    const auto parting = std::mismatch(edge.begin(), edge.end(), rest.begin(), rest.end()).first;
    way = {.node = child->second, .passed = here, .matching = static_cast<std::size_t>(parting - edge.begin())};
    if (parting != edge.end()) return way;
  }
}

PrefixTree::Match PrefixTree::match(std::span<const std::int32_t> tokens) const {
  Match match;
  const Way way = follow(tokens, [&](std::int64_t node, std::size_t length) {
    if (!at(node).is_entry) return;
    match.entry = node;
    match.tokens = static_cast<std::int64_t>(length);
  });
  match.shared = static_cast<std::int64_t>(way.passed + way.matching);
  return match;
}

PrefixTree::Entry PrefixTree::insert(std::span<const std::int32_t> tokens) {
  const Way way = follow(tokens, [](std::int64_t, std::size_t) {});
  std::int64_t node = cut(way);
  const auto rest = tokens.subspan(way.passed + way.matching);
  if (!rest.empty()) node = add_node(rest, node);
  entries_ += at(node).is_entry ? 0 : 1;
  at(node).is_entry = true;
  return node;
}

void PrefixTree::erase(Entry entry) {
  at(entry).is_entry = false;
  --entries_;
  std::int64_t node = entry;
  if (at(node).children.empty() && at(node).parent != kNone) {
    const std::int64_t parent = at(node).parent;
    at(parent).children.erase(at(node).edge.front());
    remove_node(node);
    node = parent;
  }
  const bool passes_on = at(node).children.size() == 1 && !at(node).is_entry && at(node).parent != kNone;
  if (passes_on) join_with_child(node);
}

std::int64_t PrefixTree::bytes() const {
  const std::size_t nodes = nodes_.size() - free_.size() - 1;  // without the root
  return static_cast<std::int64_t>(nodes * (sizeof(Node) + kOfPlace)) +
         edge_tokens_ * static_cast<std::int64_t>(sizeof(std::int32_t));
}

std::int64_t PrefixTree::add_node(std::span<const std::int32_t> edge, std::int64_t parent) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::int64_t>(nodes_.size()));
    nodes_.emplace_back();
  }
  const std::int64_t node = free_.back();
  free_.pop_back();
  at(node) = {.edge = std::vector<std::int32_t>(edge.begin(), edge.end()), .parent = parent};
  if (parent != kNone) at(parent).children[edge.front()] = node;
  edge_tokens_ += static_cast<std::int64_t>(edge.size());
  return node;
}

void PrefixTree::remove_node(std::int64_t node) {
  edge_tokens_ -= static_cast<std::int64_t>(at(node).edge.size());
  at(node) = {};
  free_.push_back(node);
}

std::int64_t PrefixTree::cut(const Way& way) {
  const std::vector<std::int32_t> edge = at(way.node).edge;
  if (way.matching == edge.size()) return way.node;
  const std::int64_t upper = add_node(std::span(edge).first(way.matching), at(way.node).parent);
  const auto rest = std::span(edge).subspan(way.matching);
  edge_tokens_ -= static_cast<std::int64_t>(way.matching);
  at(way.node).edge.assign(rest.begin(), rest.end());
  at(way.node).parent = upper;
  at(upper).children[rest.front()] = way.node;
  return upper;
}

void PrefixTree::join_with_child(std::int64_t node) {
  const std::int64_t child = at(node).children.begin()->second;
  const std::int64_t parent = at(node).parent;
  std::vector<std::int32_t> edge = at(node).edge;
  edge.insert(edge.end(), at(child).edge.begin(), at(child).edge.end());
  edge_tokens_ += static_cast<std::int64_t>(at(node).edge.size());
  remove_node(node);
  at(child).parent = parent;
  at(parent).children[edge.front()] = child;
  at(child).edge = std::move(edge);
}

}  // namespace routing
