#include "routing/storage/safetensors_metadata.h"

#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/core/utf8.h"
#include "routing/storage/safetensors_header.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <span>

namespace routing {

void set_safetensors_metadata(const std::filesystem::path& path, const std::string& key, const std::string& text) {
  require<FileError>(!first_invalid_utf8(key) && !first_invalid_utf8(text), path.string(), ": metadata ",
                     quoted_name(key), " is not UTF-8; store only text");
  const MappedFile mapped(path);
  SafetensorsHeader header = parse_safetensors_header(path, mapped.bytes());
  header.metadata[key] = text;
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  json[std::string(kSafetensorsMetadataKey)] = header.metadata;
  for (const SafetensorsEntry& entry : header.entries) {
    json[entry.name] = {{"dtype", entry.dtype}, {"shape", entry.shape}, {"data_offsets", {entry.begin, entry.end}}};
  }
  std::string head = json.dump();
  // As write_safetensors does: the data begin where every value type may.
  constexpr std::size_t kPadding = 8;
  head.append((kPadding - head.size() % kPadding) % kPadding, ' ');
  require<FileError>(head.size() <= kMaxSafetensorsHeaderBytes, path.string(), ": the header would have ", head.size(),
                     " bytes, more than the allowed ", kMaxSafetensorsHeaderBytes, "; store a shorter text");
  const std::uint64_t length = head.size();
  // Behind a link the file itself is replaced, not the link.
  AtomicFile target(std::filesystem::canonical(path));
  target.write(std::as_bytes(std::span(&length, 1)));
  target.write(std::as_bytes(std::span(head.data(), head.size())));
  target.write(mapped.bytes().subspan(header.data_begin));
  target.commit();
}

}  // namespace routing
