#include "routing/attention/pieces/list_rows.h"
#include "routing/core/error.h"
#include "routing/kernels/attend/query_view.h"

#include <algorithm>
#include <utility>

namespace routing {
namespace {

// The tokens of a piece whose keys joined each list of every unit, by time.
struct ListMembers {
  std::vector<std::int64_t> offsets;  // [units * lists + 1]
  std::vector<std::int32_t> tokens;   // numbers in the piece

  std::int64_t count(std::size_t list) const { return offsets[list + 1] - offsets[list]; }
  std::span<const std::int32_t> last(std::size_t list, std::int64_t count) const {
    return std::span(tokens).subspan(static_cast<std::size_t>(offsets[list + 1] - count),
                                     static_cast<std::size_t>(count));
  }
};

ListMembers members_of(const Plan& own, std::int64_t lists, std::span<const TokenLists> first_keys) {
  ListMembers members{.offsets = {0}, .tokens = {}};
  const auto* keys = own.key_order.data_ptr<std::int32_t>();
  for (std::int64_t unit = 0; unit < own.num_units(); ++unit) {
    std::vector<bool> begins(static_cast<std::size_t>(lists), false);
    if (!first_keys.empty()) {
      for (const std::int32_t list : first_keys[static_cast<std::size_t>(unit)].lists) {
        begins[static_cast<std::size_t>(list)] = true;
      }
    }
    for (std::int64_t list = 0; list < lists; ++list) {
      const GroupRange range = group_range(own, unit * lists + list);
      if (begins[static_cast<std::size_t>(list)]) members.tokens.push_back(0);
      members.tokens.insert(members.tokens.end(), keys + range.k_begin, keys + range.k_end);
      members.offsets.push_back(static_cast<std::int64_t>(members.tokens.size()));
    }
  }
  return members;
}

// [pieces, numbers]: those of all. The pairs in one order for all, so that nobody waits in a circle.
at::Tensor gathered(RowExchange& exchange, const at::Tensor& numbers) {
  const at::Tensor all = at::empty({exchange.pieces(), numbers.numel()}, numbers.options());
  const int own = exchange.piece();
  all[own].copy_(numbers);
  for (int low = 0; low < exchange.pieces(); ++low) {
    for (int high = low + 1; high < exchange.pieces(); ++high) {
      if (own != low && own != high) continue;
      const int other = own == low ? high : low;
      const RowExchange::Arrival there = exchange.start_send(numbers, other);
      exchange.receive(all[other], other);
      there();
    }
  }
  return all;
}

// What came, as the lists of one unit hold it.
struct EarlierKeys {
  std::vector<std::int32_t> positions, rows;
};

class ListJoin {
 public:
  ListJoin(const Plan& own, const ListRules& rules, std::span<const TokenLists> first_keys, const SequencePiece& piece)
      : own_(own),
        lists_(rules.lists),
        lookback_(rules.lookback.value()),
        piece_(piece),
        members_(members_of(own, rules.lists, first_keys)),
        earlier_(members_.offsets.size() - 1),
        filled_(static_cast<std::size_t>(own.num_units()), 0) {}

  JoinedLists join() {
    RowExchange& exchange = *piece_.exchange;
    count_lists(exchange);
    const auto pieces = static_cast<std::size_t>(exchange.pieces());
    ListReading reading{.piece = piece_, .rows = tokens(), .sent = {}, .received = {}};
    reading.piece.before = at::Tensor();  // of no use here
    reading.sent.resize(pieces);
    reading.received.resize(pieces);
    for (int from = 0; from < exchange.piece(); ++from) {
      at::Tensor length = at::zeros({1}, at::kLong);
      exchange.receive(length, from);
      at::Tensor words = at::empty({length.item<std::int64_t>()}, at::kInt);
      if (words.numel() > 0) exchange.receive(words, from);
      reading.received.at(static_cast<std::size_t>(from)) = read(words, from);
    }
    for (int to = exchange.piece() + 1; to < exchange.pieces(); ++to) {
      std::vector<std::int32_t> numbers;
      reading.sent.at(static_cast<std::size_t>(to)) = write(to, numbers);
      const at::Tensor words = at::tensor(numbers, at::kInt);
      exchange.send(at::full({1}, words.numel(), at::kLong), to);
      if (words.numel() > 0) exchange.send(words, to);
    }
    JoinedLists joined{.plan = own_, .reading = {}};
    if (exchange.piece() > 0) {
      // One more, for the places that nobody reads.
      reading.rows += *std::max_element(filled_.begin(), filled_.end()) + 1;
      joined.plan = joined_plan(reading.rows);
    }
    joined.reading = std::make_shared<const ListReading>(std::move(reading));
    return joined;
  }

 private:
  std::int64_t tokens() const { return piece_.end() - piece_.begin(); }
  std::size_t lists_of_units() const { return earlier_.size(); }

  void count_lists(RowExchange& exchange) {
    std::vector<std::int32_t> counts;
    for (std::size_t list = 0; list < lists_of_units(); ++list) {
      counts.push_back(static_cast<std::int32_t>(members_.count(list)));
    }
    const at::Tensor all = gathered(exchange, at::tensor(counts, at::kInt));
    const auto* count = all.data_ptr<std::int32_t>();
    joined_.assign(1, std::vector<std::int64_t>(lists_of_units(), 0));
    for (int piece = 0; piece < exchange.pieces(); ++piece) {
      joined_.push_back(joined_.back());
      for (std::int64_t& list : joined_.back()) list += *count++;
    }
  }

  // The keys that joined a list before a piece.
  std::int64_t joined(int piece, std::size_t list) const { return joined_.at(static_cast<std::size_t>(piece))[list]; }
  // The rank of the first of them that its queries can read.
  std::int64_t first_read(int piece, std::size_t list) const {
    return std::max<std::int64_t>(0, joined(piece, list) - lookback_);
  }
  // How many of the last keys of a list in piece `from` the piece `to` reads.
  std::int64_t needed(int from, int to, std::size_t list) const {
    const std::int64_t end = joined(from + 1, list);
    return end - std::clamp(first_read(to, list), joined(from, list), end);
  }

  // Of every unit: how many rows, their positions, and list after list the numbers of those in it. Returns the rows.
  std::vector<at::Tensor> write(int to, std::vector<std::int32_t>& words) const {
    std::vector<at::Tensor> sent;
    const auto begin = static_cast<std::int32_t>(piece_.begin());
    std::vector<std::int32_t> numbers(static_cast<std::size_t>(tokens()));
    for (std::size_t first = 0; first < lists_of_units(); first += static_cast<std::size_t>(lists_)) {
      std::vector<std::span<const std::int32_t>> read;
      std::fill(numbers.begin(), numbers.end(), 0);
      for (std::size_t list = first; list < first + static_cast<std::size_t>(lists_); ++list) {
        read.push_back(members_.last(list, needed(piece_.number(), to, list)));
        for (const std::int32_t token : read.back()) numbers[static_cast<std::size_t>(token)] = 1;
      }
      std::vector<std::int64_t> rows;
      words.push_back(0);
      const std::size_t place_of_count = words.size() - 1;
      for (std::size_t token = 0; token < numbers.size(); ++token) {
        if (numbers[token] == 0) continue;
        words.push_back(begin + static_cast<std::int32_t>(token));
        numbers[token] = static_cast<std::int32_t>(rows.size());
        rows.push_back(static_cast<std::int64_t>(token));
      }
      words[place_of_count] = static_cast<std::int32_t>(rows.size());
      for (const auto& list : read) {
        for (const std::int32_t token : list) words.push_back(numbers[static_cast<std::size_t>(token)]);
      }
      sent.push_back(at::tensor(rows, at::kLong));
    }
    return sent;
  }

  std::vector<ListReading::Rows> read(const at::Tensor& words, int from) {
    std::span<const std::int32_t> rest(words.data_ptr<std::int32_t>(), static_cast<std::size_t>(words.numel()));
    const auto next = [&](std::int64_t count) {
      require<InputError>(count >= 0 && count <= static_cast<std::int64_t>(rest.size()), "the lists of piece ", from,
                          " for piece ", piece_.number(), " end ", count - static_cast<std::int64_t>(rest.size()),
                          " words too early; do all ranks train the same model?");
      const auto taken = rest.first(static_cast<std::size_t>(count));
      rest = rest.subspan(static_cast<std::size_t>(count));
      return taken;
    };
    std::vector<ListReading::Rows> received;
    std::size_t list = 0;
    for (std::int64_t& filled : filled_) {
      const ListReading::Rows place{.first = tokens() + filled, .count = next(1).front()};
      const auto positions = next(place.count);
      for (std::int64_t n = 0; n < lists_; ++n, ++list) {
        for (const std::int32_t number : next(needed(from, piece_.number(), list))) {
          earlier_[list].positions.push_back(positions[static_cast<std::size_t>(number)]);
          earlier_[list].rows.push_back(static_cast<std::int32_t>(place.first) + number);
        }
      }
      filled += place.count;
      received.push_back(place);
    }
    require<InputError>(rest.empty(), "the lists of piece ", from, " for piece ", piece_.number(), " came with ",
                        rest.size(), " words too many; do all ranks train the same model?");
    return received;
  }

  // Lists go on from what came. Places that nobody reads stand in for keys that did not come, so that ranks are those
  // of the whole sequence but for whole tiles; their positions are as good as any that are before those of keys that
  // came.
  Plan joined_plan(std::int64_t rows) const {
    const auto begin = static_cast<std::int32_t>(piece_.begin());
    std::vector<std::int32_t> positions;
    std::vector<std::int32_t> places;
    Plan plan = own_;
    plan.groups = own_.groups.clone();
    auto* group = plan.groups.data_ptr<std::int64_t>();
    for (std::size_t list = 0; list < lists_of_units(); ++list, group += 4) {
      group[2] = static_cast<std::int64_t>(positions.size());
      const auto nobody = static_cast<std::int32_t>(first_read(piece_.number(), list) % kernels::kAttendTile);
      for (std::int32_t n = 0; n < nobody; ++n) {
        positions.push_back(n);
        places.push_back(static_cast<std::int32_t>(rows - 1));
      }
      const EarlierKeys& earlier = earlier_[list];
      positions.insert(positions.end(), earlier.positions.begin(), earlier.positions.end());
      places.insert(places.end(), earlier.rows.begin(), earlier.rows.end());
      for (const std::int32_t token : members_.last(list, members_.count(list))) {
        positions.push_back(begin + token);
        places.push_back(token);
      }
      group[3] = static_cast<std::int64_t>(positions.size());
    }
    plan.key_order = at::tensor(positions, at::kInt);
    plan.key_rows = at::tensor(places, at::kInt);
    plan.query_order = own_.query_order + begin;
    plan.query_origin = begin;
    plan.num_keys = rows;
    return complete_plan(std::move(plan));
  }

  // NOLINTBEGIN(cppcoreguidelines-avoid-const-or-ref-data-members): lives inside one call.
  const Plan& own_;
  std::int64_t lists_, lookback_;
  const SequencePiece& piece_;
  // NOLINTEND(cppcoreguidelines-avoid-const-or-ref-data-members)
  ListMembers members_;
  std::vector<EarlierKeys> earlier_;  // by list of a unit
  std::vector<std::int64_t> filled_;  // rows of a unit that came so far
  std::vector<std::vector<std::int64_t>> joined_;
};

}  // namespace

bool reads_by_list(const ListRules& rules, bool by_content) {
  return (by_content || rules.lists > 1) && rules.lookback && rules.block == 0 && rules.period_keys.empty();
}

JoinedLists join_lists(const Plan& own, const ListRules& rules, std::span<const TokenLists> first_keys,
                       const SequencePiece& piece) {
  require<InputError>(reads_by_list(rules, true) && own.num_groups() == own.num_units() * rules.lists &&
                          own.num_queries == piece.end() - piece.begin() && own.num_keys == own.num_queries &&
                          own.query_origin == 0 && own.key_origin == 0 && !own.key_rows.defined(),
                      "join_lists: a plan of ", own.num_groups(), " groups over ", own.num_queries,
                      " tokens for the piece ", piece.begin(), " to ", piece.end(), " and ", rules.lists,
                      " lists of each of ", own.num_units(), " heads; make it of the piece alone");
  require<InputError>(first_keys.empty() || static_cast<std::int64_t>(first_keys.size()) == own.num_units(),
                      "join_lists: lists of the first keys of ", first_keys.size(), " heads, but the plan has ",
                      own.num_units());
  return ListJoin(own, rules, first_keys, piece).join();
}

}  // namespace routing
