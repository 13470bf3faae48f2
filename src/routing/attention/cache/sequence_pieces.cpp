#include "routing/attention/cache/sequence_pieces.h"

#include "routing/core/error.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

namespace routing {
namespace {

constexpr std::int64_t kBegin = 0, kTokens = 1, kFirstList = 2;  // columns of the table

// What all pieces have said: where they stand, and how many keys joined each list in them.
class PieceTable {
 public:
  PieceTable(const at::Tensor& gathered, std::span<const PieceKeys> groups)
      : pieces_(gathered.size(0)), columns_(gathered.size(1)) {
    before_.assign(static_cast<std::size_t>((pieces_ + 1) * columns_), 0);
    const auto* number = gathered.data_ptr<std::int32_t>();
    for (std::int64_t piece = 0; piece < pieces_; ++piece, number += columns_) {
      require<InputError>(number[kBegin] == before(piece, kTokens), "piece ", piece,
                          " of the sequence begins at token ", number[kBegin], ", but the pieces before it have ",
                          before(piece, kTokens), " tokens; pieces must follow each other");
      for (std::int64_t column = 0; column < columns_; ++column) {
        before_[place(piece + 1, column)] = before(piece, column) + number[column];
      }
    }
    std::int64_t column = kFirstList;
    for (const PieceKeys& group : groups) {
      first_columns_.push_back(column);
      column += group.cache->shape().heads * group.cache->shape().rules.lists;
    }
  }

  // The keys that joined a list (counted over the heads of a group) before a piece.
  std::int64_t joined(std::int64_t piece, std::size_t group, std::int64_t list) const {
    return before(piece, first_columns_[group] + list);
  }
  std::int64_t first_position(std::int64_t piece) const { return before(piece, kTokens); }

 private:
  std::size_t place(std::int64_t piece, std::int64_t column) const {
    return static_cast<std::size_t>(piece * columns_ + column);
  }
  std::int64_t before(std::int64_t piece, std::int64_t column) const { return before_[place(piece, column)]; }

  std::int64_t pieces_, columns_;
  std::vector<std::int64_t> before_;  // [pieces + 1, columns]: sums over the pieces before
  std::vector<std::int64_t> first_columns_;
};

// The tokens of a piece whose keys joined each list, by time.
struct ListMembers {
  std::vector<std::int64_t> offsets;  // [heads * lists + 1]
  std::vector<std::int32_t> tokens;
};

ListMembers members_of(const PieceKeys& group) {
  const std::int64_t lists = group.cache->shape().rules.lists;
  ListMembers members{
      .offsets = std::vector<std::int64_t>(group.key_lists.size() * static_cast<std::size_t>(lists) + 1), .tokens = {}};
  const auto for_each = [&](const auto& visit) {
    std::int64_t first_list = 0;
    for (const TokenLists& head : group.key_lists) {
      const std::int32_t* list = head.lists.data();
      for (std::size_t token = 0; token < head.counts.size(); ++token) {
        for (std::int32_t n = head.counts[token]; n > 0; --n) {
          visit(static_cast<std::size_t>(first_list + *list++), static_cast<std::int32_t>(token));
        }
      }
      first_list += lists;
    }
  };
  for_each([&](std::size_t list, std::int32_t /*token*/) { ++members.offsets[list + 1]; });
  for (std::size_t list = 1; list < members.offsets.size(); ++list) members.offsets[list] += members.offsets[list - 1];
  members.tokens.resize(static_cast<std::size_t>(members.offsets.back()));
  std::vector<std::int64_t> next = members.offsets;
  for_each(
      [&](std::size_t list, std::int32_t token) { members.tokens[static_cast<std::size_t>(next[list]++)] = token; });
  return members;
}

// A layer's groups of heads in one piece, and what they send to and take from the others.
class LayerPieces {
 public:
  LayerPieces(PieceExchange& exchange, std::int64_t sequence, std::span<const PieceKeys> groups)
      : groups_(groups), sequence_(sequence), piece_(exchange.piece()), table_(gather(exchange), groups) {}

  // Ranks before the first that is read here are nobody's any more.
  void prepare_caches() const {
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      const HeadCacheShape& shape = groups_[group].cache->shape();
      std::vector<std::int64_t> ranks;
      std::int64_t memberships = 0;
      for (std::int64_t list = 0; list < shape.heads * shape.rules.lists; ++list) {
        ranks.push_back(first_read(piece_, group, list));
        memberships += table_.joined(piece_, group, list) - ranks.back();
      }
      groups_[group].cache->skip_ranks(sequence_, ranks);
      // Rows may be in several lists; each of the piece's own is kept for a moment.
      groups_[group].cache->reserve(std::min(memberships, shape.heads * table_.first_position(piece_)) +
                                    shape.heads * groups_[group].keys.size(2));
    }
  }

  at::Tensor message_to(std::int64_t later) const {
    const auto words = std::make_shared<std::vector<std::int32_t>>();
    for (std::size_t group = 0; group < groups_.size(); ++group) write(group, later, *words);
    return at::from_blob(
        words->data(), {static_cast<std::int64_t>(words->size())}, [words](void* /*data*/) {}, at::kInt);
  }

  void take(const at::Tensor& words, std::int64_t earlier) const {
    std::span<const std::int32_t> rest(words.data_ptr<std::int32_t>(), static_cast<std::size_t>(words.numel()));
    for (std::size_t group = 0; group < groups_.size(); ++group) read(group, earlier, rest);
    require<InputError>(rest.empty(), "the keys of piece ", earlier, " for piece ", piece_, " came with ", rest.size(),
                        " words too many; do all ranks read the same model?");
  }

 private:
  at::Tensor gather(PieceExchange& exchange) {
    std::vector<std::int32_t> numbers{static_cast<std::int32_t>(groups_.front().cache->length(sequence_)),
                                      static_cast<std::int32_t>(groups_.front().keys.size(2))};
    for (const PieceKeys& group : groups_) {
      members_.push_back(members_of(group));
      const std::vector<std::int64_t>& offsets = members_.back().offsets;
      for (std::size_t list = 1; list < offsets.size(); ++list) {
        numbers.push_back(static_cast<std::int32_t>(offsets[list] - offsets[list - 1]));
      }
    }
    return exchange.gather(at::tensor(numbers, at::kInt));
  }

  // The rank of a list's first key that the queries of a piece can read: the rule of HeadCache::release.
  std::int64_t first_read(std::int64_t piece, std::size_t group, std::int64_t list) const {
    const ListRules& rules = groups_[group].cache->shape().rules;
    if (rules.block > 0) {
      return std::min(rules.first_rank(list % rules.lists, table_.first_position(piece)),
                      table_.joined(piece, group, list));
    }
    if (!rules.lookback) return 0;
    return std::max<std::int64_t>(0, table_.joined(piece, group, list) - *rules.lookback);
  }

  // How many of the last keys of a list in piece `from` the piece `to` needs.
  std::int64_t needed(std::int64_t from, std::int64_t to, std::size_t group, std::int64_t list) const {
    const std::int64_t end = table_.joined(from + 1, group, list);
    return end - std::clamp(first_read(to, group, list), table_.joined(from, group, list), end);
  }

  void write(std::size_t index, std::int64_t later, std::vector<std::int32_t>& words) const {
    const PieceKeys& group = groups_[index];
    const HeadCacheShape& shape = group.cache->shape();
    const ListMembers& members = members_[index];
    const auto first_position = static_cast<std::int32_t>(table_.first_position(piece_));
    std::vector<std::int32_t> numbers(static_cast<std::size_t>(group.keys.size(2)));
    for (std::int64_t head = 0; head < shape.heads; ++head) {
      std::vector<std::span<const std::int32_t>> sent;
      std::fill(numbers.begin(), numbers.end(), 0);
      for (std::int64_t list = head * shape.rules.lists; list < (head + 1) * shape.rules.lists; ++list) {
        const std::int64_t count = needed(piece_, later, index, list);
        const std::int64_t end = members.offsets[static_cast<std::size_t>(list + 1)];
        sent.push_back(
            std::span(members.tokens).subspan(static_cast<std::size_t>(end - count), static_cast<std::size_t>(count)));
        for (const std::int32_t token : sent.back()) numbers[static_cast<std::size_t>(token)] = 1;
      }
      const std::size_t place_of_count = words.size();
      words.push_back(0);
      std::int32_t rows = 0;
      for (std::size_t token = 0; token < numbers.size(); ++token) {
        if (numbers[token] == 0) continue;
        words.push_back(first_position + static_cast<std::int32_t>(token));
        append_row(group.keys, head, static_cast<std::int64_t>(token), words);
        append_row(group.values, head, static_cast<std::int64_t>(token), words);
        numbers[token] = rows++;
      }
      words[place_of_count] = rows;
      for (const auto& list : sent) {
        for (const std::int32_t token : list) words.push_back(numbers[static_cast<std::size_t>(token)]);
      }
    }
  }

  static void append_row(const at::Tensor& heads, std::int64_t head, std::int64_t token,
                         std::vector<std::int32_t>& words) {
    const std::size_t place = words.size();
    words.resize(place + static_cast<std::size_t>(heads.size(3)));
    std::memcpy(words.data() + place, heads.data_ptr<float>() + head * heads.stride(1) + token * heads.stride(2),
                static_cast<std::size_t>(heads.size(3)) * sizeof(float));
  }

  void read(std::size_t index, std::int64_t earlier, std::span<const std::int32_t>& rest) const {
    const HeadCacheShape& shape = groups_[index].cache->shape();
    const auto next = [&](std::int64_t count) {
      require<InputError>(count >= 0 && count <= static_cast<std::int64_t>(rest.size()), "the keys of piece ", earlier,
                          " for piece ", piece_, " end ", count - static_cast<std::int64_t>(rest.size()),
                          " words too early; do all ranks read the same model?");
      const auto taken = rest.first(static_cast<std::size_t>(count));
      rest = rest.subspan(static_cast<std::size_t>(count));
      return taken;
    };
    for (std::int64_t head = 0; head < shape.heads; ++head) {
      const std::int64_t rows = next(1).front();
      HeadCache::PastKeys past{.head = head, .rows = next(rows * (1 + shape.key_dim + shape.value_dim)), .counts = {}};
      std::int64_t memberships = 0;
      for (std::int64_t list = head * shape.rules.lists; list < (head + 1) * shape.rules.lists; ++list) {
        past.counts.push_back(needed(earlier, piece_, index, list));
        memberships += past.counts.back();
      }
      past.members = next(memberships);
      groups_[index].cache->join_past(sequence_, past);
    }
  }

  std::span<const PieceKeys> groups_;
  std::int64_t sequence_, piece_;
  std::vector<ListMembers> members_;
  PieceTable table_;  // last: it is made of what gather() has put into members_
};

}  // namespace

void take_keys_before(PieceExchange& exchange, std::int64_t sequence, std::span<const PieceKeys> groups) {
  const LayerPieces layer(exchange, sequence, groups);
  layer.prepare_caches();
  for (int earlier = 0; earlier < exchange.piece(); ++earlier) layer.take(exchange.receive(earlier), earlier);
  for (int later = exchange.piece() + 1; later < exchange.pieces(); ++later) {
    exchange.send(layer.message_to(later), later);
  }
}

}  // namespace routing
