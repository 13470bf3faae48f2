#include "routing/data/compressors.h"

#include "routing/core/error.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <lzma.h>
#include <zlib.h>

namespace routing {
namespace {

constexpr int kGzipFormat = 16;  // added to zlib's window bits
constexpr int kDefaultMemoryLevel = 8;
constexpr std::size_t kBufferBytes = std::size_t{1} << 16U;
constexpr std::uint32_t kBestPreset = 9;

using Buffer = std::array<std::uint8_t, kBufferBytes>;

void require_text(std::span<const std::uint8_t> text) {
  require<InputError>(!text.empty(), "bits per byte of 0 bytes of text; give the compressor at least 1");
}

double bits_per_byte(std::uint64_t compressed, std::size_t size) {
  return 8.0 * static_cast<double>(compressed) / static_cast<double>(size);
}

}  // namespace

double gzip_bits_per_byte(std::span<const std::uint8_t> text) {
  require_text(text);
  z_stream stream = {};
  require<Error>(deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, MAX_WBITS + kGzipFormat, kDefaultMemoryLevel,
                              Z_DEFAULT_STRATEGY) == Z_OK,
                 "zlib could not be started; free some memory");
  Buffer buffer;
  std::size_t consumed = 0;
  std::uint64_t compressed = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    const auto left = std::min<std::size_t>(text.size() - consumed, std::numeric_limits<uInt>::max());
    // zlib does not write to its input; its interface only says so if ZLIB_CONST is defined.
    stream.next_in = const_cast<Bytef*>(text.data() + consumed);
    stream.avail_in = static_cast<uInt>(left);
    stream.next_out = buffer.data();
    stream.avail_out = static_cast<uInt>(buffer.size());
    status = deflate(&stream, consumed + left == text.size() ? Z_FINISH : Z_NO_FLUSH);
    consumed += left - stream.avail_in;
    compressed += buffer.size() - stream.avail_out;
  }
  deflateEnd(&stream);
  require<Error>(status == Z_STREAM_END, "zlib stopped with status ", status, " after ", consumed, " of ", text.size(),
                 " bytes");
  return bits_per_byte(compressed, text.size());
}

double xz_bits_per_byte(std::span<const std::uint8_t> text) {
  require_text(text);
  lzma_options_lzma options;
  require<Error>(lzma_lzma_preset(&options, kBestPreset) == 0, "liblzma does not know preset ", kBestPreset);
  const std::size_t needed = std::bit_ceil(std::max<std::size_t>(text.size(), LZMA_DICT_SIZE_MIN));
  options.dict_size = static_cast<std::uint32_t>(std::min<std::size_t>(options.dict_size, needed));
  const std::array<lzma_filter, 2> filters = {{{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, nullptr}}};
  lzma_stream stream = LZMA_STREAM_INIT;
  require<Error>(lzma_stream_encoder(&stream, filters.data(), LZMA_CHECK_CRC64) == LZMA_OK,
                 "liblzma could not be started; free some memory, it needs about ten times ", options.dict_size,
                 " bytes");
  Buffer buffer;
  stream.next_in = text.data();
  stream.avail_in = text.size();
  lzma_ret status = LZMA_OK;
  while (status == LZMA_OK) {
    stream.next_out = buffer.data();
    stream.avail_out = buffer.size();
    status = lzma_code(&stream, LZMA_FINISH);
  }
  const std::uint64_t compressed = stream.total_out;
  lzma_end(&stream);
  require<Error>(status == LZMA_STREAM_END, "liblzma stopped with status ", static_cast<int>(status), " while packing ",
                 text.size(), " bytes");
  return bits_per_byte(compressed, text.size());
}

}  // namespace routing
