// Pickles put together by hand, and archives of torch.save() around them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>
#include <zip.h>

namespace routing {

inline std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int index = 0; index < bytes; ++index) text += static_cast<char>(value >> (8 * index) & 0xFFU);
  return text;
}
inline std::string pickle_of(const std::string& body) {
  return "\x80\x02" + body + ".";
}
inline std::string string_of(const std::string& text) {
  return "X" + little_endian(text.size(), 4) + text;
}
inline std::string number_of(std::int64_t number) {
  return "\x8a\x08" + little_endian(static_cast<std::uint64_t>(number), 8);
}
inline std::string tuple_of(const std::vector<std::string>& items) {
  std::string text = "(";
  for (const std::string& item : items) text += item;
  return text + "t";
}
inline std::string numbers_of(const std::vector<std::int64_t>& numbers) {
  std::vector<std::string> items;
  for (const std::int64_t number : numbers) items.push_back(number_of(number));
  return tuple_of(items);
}
inline std::string function_of(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
inline std::string empty_dictionary() {
  return function_of("collections", "OrderedDict") + ")R";
}
inline std::string dictionary_of(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string text = empty_dictionary() + "(";
  for (const auto& [key, value] : entries) text += string_of(key) + value;
  return text + "u";
}
inline std::string storage_of(const std::string& kind, const std::string& number, std::int64_t count) {
  return tuple_of({string_of("storage"), function_of("torch", kind), string_of(number), string_of("cpu"),
                   number_of(count)}) +
         "Q";
}

// A view as torch.save() writes it: 4 numbers of storage 0 unless told otherwise.
struct ViewBytes {
  std::string storage = storage_of("FloatStorage", "0", 4);
  std::string offset = number_of(0);
  std::string size = numbers_of({2, 2});
  std::string stride = numbers_of({2, 1});
};
inline std::string tensor_of(const ViewBytes& view) {
  return function_of("torch._utils", "_rebuild_tensor_v2") +
         tuple_of({view.storage, view.offset, view.size, view.stride, "\x89", empty_dictionary()}) + "R";
}

struct ZipEntry {
  std::string name, bytes;
  bool deflated = false;
};
inline void write_archive(const std::filesystem::path& path, const std::vector<ZipEntry>& entries) {
  int code = 0;
  zip_t* const archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
  ASSERT_NE(archive, nullptr);
  for (const ZipEntry& entry : entries) {
    zip_source_t* const source = zip_source_buffer(archive, entry.bytes.data(), entry.bytes.size(), 0);
    const zip_int64_t index = zip_file_add(archive, entry.name.c_str(), source, ZIP_FL_ENC_UTF_8);
    ASSERT_GE(index, 0);
    zip_set_file_compression(archive, static_cast<zip_uint64_t>(index), entry.deflated ? ZIP_CM_DEFLATE : ZIP_CM_STORE,
                             0);
  }
  ASSERT_EQ(zip_close(archive), 0);
}

}  // namespace routing
