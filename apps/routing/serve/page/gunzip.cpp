#include "serve/page/gunzip.h"

#include <array>
#include <stdexcept>
#include <zlib.h>

namespace routing {

std::string gunzip(std::string_view bytes) {
  z_stream stream{};
  // 16 more than the window: gzip's header instead of zlib's.
  if (inflateInit2(&stream, MAX_WBITS + 16) != Z_OK) throw std::runtime_error("zlib has no memory");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string text;
  std::array<char, 1 << 16> part{};
  int state = Z_OK;
  while (state == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(part.data());
    stream.avail_out = static_cast<uInt>(part.size());
    state = inflate(&stream, Z_NO_FLUSH);
    text.append(part.data(), part.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (state != Z_STREAM_END) throw std::runtime_error("the bytes of the page are damaged");
  return text;
}

}  // namespace routing
