// The part of HeadCache that long pieces of a sequence need: keys that others have read, and room handed back.
#include "routing/attention/cache/head_cache.h"
#include "routing/core/error.h"

#include <algorithm>
#include <utility>

namespace routing {

void HeadCache::begin_at(std::int64_t sequence, std::int64_t position) {
  require<InputError>(!shape_.memory, "cache: heads that read a memory were told to begin at position ", position,
                      ", but only heads that read their own sequence can");
  require<InputError>(position >= 0 && position <= kMostTokens, "cache: a sequence was told to begin at position ",
                      position, ", but positions are 0 to ", kMostTokens);
  require<InputError>(at(sequence).length == 0, "cache: sequence ", sequence, " has read ", at(sequence).length,
                      " tokens, but only a new one can begin at position ", position);
  at(sequence).length = position;
  at(sequence).lacks_past = position > 0;
}

void HeadCache::skip_ranks(std::int64_t sequence, std::span<const std::int64_t> ranks) {
  std::vector<List>& lists = at(sequence).lists;
  require<InputError>(ranks.size() == lists.size(), "cache: ranks of ", ranks.size(), " lists, but there are ",
                      lists.size());
  for (std::size_t list = 0; list < lists.size(); ++list) {
    require<InputError>(lists[list].end_rank() == 0, "cache: list ", list, " of sequence ", sequence, " has ",
                        lists[list].end_rank(), " keys, but only a new sequence takes those before it");
    lists[list].dropped = ranks[list];
  }
  at(sequence).lacks_past = false;
}

void HeadCache::join_past(std::int64_t sequence, const PastKeys& past) {
  const auto width = static_cast<std::size_t>(1 + shape_.key_dim + shape_.value_dim);
  std::vector<std::int32_t> rows;
  for (std::size_t place = 0; place < past.rows.size(); place += width) {
    // Only copied, never read as what it is not.
    const auto* key = reinterpret_cast<const float*>(past.rows.data() + place + 1);
    rows.push_back(take_row(at(sequence), key, key + shape_.key_dim));
  }
  List* list = at(sequence).lists.data() + past.head * shape_.rules.lists;
  const std::int32_t* member = past.members.data();
  for (const std::int64_t count : past.counts) {
    for (std::int64_t n = 0; n < count; ++n, ++member) {
      const auto row = static_cast<std::size_t>(*member);
      require<InputError>(*member >= 0 && row < rows.size(), "cache: key ", *member, " of ", rows.size(),
                          " joins a list; do all ranks read the same model?");
      at(sequence).touched.push_back(static_cast<std::int32_t>(list - at(sequence).lists.data()));
      join(*list, rows[row], past.rows[row * width]);
    }
    ++list;
  }
}

void HeadCache::compact() {
  const std::int64_t in_use = rows_in_use();
  if (4 * in_use >= 3 * store_.capacity()) return;
  constexpr std::int32_t kNone = -1;
  std::vector<std::int32_t> number(static_cast<std::size_t>(used_rows_), kNone);
  std::vector<std::uint32_t> holders, keepers;
  keepers_.resize(holders_.size(), 0);
  RowStore store(shape_.key_dim, shape_.value_dim, shape_.halves);
  store.resize(in_use, 0);
  for (Sequence& sequence : sequences_) {
    sequence.spare = {};
    for (List& list : sequence.lists) {
      list.rows.erase(list.rows.begin(), list.rows.begin() + list.first);
      list.positions.erase(list.positions.begin(), list.positions.begin() + list.first);
      list.first = 0;
      list.rows.shrink_to_fit();
      list.positions.shrink_to_fit();
      for (std::int32_t& row : list.rows) {
        std::int32_t& to = number[static_cast<std::size_t>(row)];
        if (to == kNone) {
          to = static_cast<std::int32_t>(holders.size());
          holders.push_back(holders_[static_cast<std::size_t>(row)]);
          keepers.push_back(keepers_[static_cast<std::size_t>(row)]);
          store.copy(to, store_, row);
        }
        row = to;
      }
    }
  }
  store_ = std::move(store);
  holders_ = std::move(holders);
  keepers_ = std::move(keepers);
  free_rows_ = {};
  used_rows_ = in_use;
}

}  // namespace routing
