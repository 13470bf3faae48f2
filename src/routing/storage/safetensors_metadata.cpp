#include "routing/storage/safetensors_metadata.h"

#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/core/utf8.h"
#include "routing/storage/safetensors_header.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <span>
#include <system_error>

namespace routing {

void copy_safetensors(const std::filesystem::path& from, const std::filesystem::path& to,
                      const std::map<std::string, std::string>& texts) {
  const MappedFile mapped(from);
  SafetensorsHeader header = parse_safetensors_header(from, mapped.bytes());
  for (const auto& [key, text] : texts) {
    require<FileError>(!first_invalid_utf8(key) && !first_invalid_utf8(text), to.string(), ": metadata ",
                       quoted_name(key), " is not UTF-8; store only text");
    header.metadata[key] = text;
  }
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  json[std::string(kSafetensorsMetadataKey)] = header.metadata;
  for (const SafetensorsEntry& entry : header.entries) {
    json[entry.name] = {{"dtype", entry.dtype}, {"shape", entry.shape}, {"data_offsets", {entry.begin, entry.end}}};
  }
  std::string head = json.dump();
  // As write_safetensors does: the data begin where every value type may.
  constexpr std::size_t kPadding = 8;
  head.append((kPadding - head.size() % kPadding) % kPadding, ' ');
  require<FileError>(head.size() <= kMaxSafetensorsHeaderBytes, to.string(), ": the header would have ", head.size(),
                     " bytes, more than the allowed ", kMaxSafetensorsHeaderBytes, "; store a shorter text");
  const std::uint64_t length = head.size();
  AtomicFile target(to);
  target.write(std::as_bytes(std::span(&length, 1)));
  target.write(std::as_bytes(std::span(head.data(), head.size())));
  target.write(mapped.bytes().subspan(header.data_begin));
  target.commit();
}

void set_safetensors_metadata(const std::filesystem::path& path, const std::string& key, const std::string& text) {
  // Behind a link the file itself is replaced, not the link.
  std::error_code ignored;
  const std::filesystem::path file = std::filesystem::canonical(path, ignored);
  copy_safetensors(path, file.empty() ? path : file, {{key, text}});
}

}  // namespace routing
