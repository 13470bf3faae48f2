#include "routing/ops/dense/adaptive_embedding.h"

#include "routing/core/error.h"
#include "routing/ops/dense/linear.h"
#include "routing/ops/embedding.h"

namespace routing {
namespace {

// The rows that ids read in each band, and where each id's vector stands among those of all bands, one after the other.
struct RowsByBand {
  std::vector<std::vector<std::int64_t>> rows = {};
  std::vector<std::int64_t> places = {};
};

RowsByBand rows_by_band(const at::Tensor& ids, const BandedTable& table) {
  const at::Tensor flat = ids.cpu().contiguous();
  const auto* id = flat.data_ptr<std::int64_t>();
  const auto count = static_cast<std::size_t>(flat.numel());
  RowsByBand result{.rows = std::vector<std::vector<std::int64_t>>(table.bands.size()),
                    .places = std::vector<std::int64_t>(count)};
  std::int64_t words = 0;
  for (const EmbeddingBand& band : table.bands) words += band.words;
  std::vector<std::size_t> band_of(count);
  for (std::size_t position = 0; position < count; ++position) {
    const bool is_extra = id[position] == words && table.extra_row >= 0;
    require<InputError>(is_extra || (id[position] >= 0 && id[position] < words), "adaptive_embedding: id ",
                        id[position], " at position ", position, ", but ids are 0 to ",
                        table.extra_row >= 0 ? words : words - 1);
    std::size_t band = 0;
    std::int64_t row = is_extra ? table.extra_row : id[position];
    while (!is_extra && row >= table.bands[band].words) row -= table.bands[band++].words;
    band_of[position] = band;
    result.places[position] = static_cast<std::int64_t>(result.rows[band].size());
    result.rows[band].push_back(row);
  }
  std::vector<std::int64_t> before(table.bands.size(), 0);
  for (std::size_t band = 1; band < before.size(); ++band) {
    before[band] = before[band - 1] + static_cast<std::int64_t>(result.rows[band - 1].size());
  }
  for (std::size_t position = 0; position < count; ++position) result.places[position] += before[band_of[position]];
  return result;
}

void check_bands(const BandedTable& table) {
  require<InputError>(!table.bands.empty(), "adaptive_embedding: there are no bands; give at least one");
  const auto width = [](const EmbeddingBand& band) {
    return band.projection.defined() ? band.projection.size(0) : band.table.size(1);
  };
  for (const EmbeddingBand& band : table.bands) {
    require<InputError>(band.table.dim() == 2 && band.words >= 0 && band.table.size(0) >= band.words,
                        "adaptive_embedding: a table is ", band.table.sizes(), ", but must be [at least ", band.words,
                        ", width of the band]");
    require<InputError>(width(band) == width(table.bands.front()), "adaptive_embedding: one band gives vectors of ",
                        width(table.bands.front()), " numbers and another of ", width(band),
                        "; project all of them to one width");
  }
}

}  // namespace

at::Tensor adaptive_embedding(const at::Tensor& ids, const BandedTable& table, MatmulPrecision precision) {
  require<InputError>(ids.scalar_type() == at::kLong && !ids.is_meta(), "adaptive_embedding: ids hold ",
                      ids.scalar_type(), " on ", ids.device().str(), ", but must be Long with values");
  check_bands(table);
  const RowsByBand by_band = rows_by_band(ids, table);
  const auto as_tensor = [&](const std::vector<std::int64_t>& numbers) {
    return at::tensor(numbers, at::kLong).to(ids.device());
  };
  std::vector<at::Tensor> parts;
  for (std::size_t index = 0; index < table.bands.size(); ++index) {
    const EmbeddingBand& band = table.bands[index];
    at::Tensor part = routing::embedding(as_tensor(by_band.rows[index]), band.table);
    if (band.projection.defined()) part = routing::linear(part, band.projection, {}, {.precision = precision});
    parts.push_back(part);
  }
  const at::Tensor vectors = routing::embedding(as_tensor(by_band.places), at::cat(parts, 0));
  std::vector<std::int64_t> sizes = ids.sizes().vec();
  sizes.push_back(vectors.size(1));
  return vectors.view(sizes);
}

}  // namespace routing
