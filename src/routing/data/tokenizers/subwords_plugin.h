// The face of the plug-in routing_subwords.so, which alone is linked with SentencePiece.
//
// libsentencepiece and libtorch each bring a protobuf of their own. Linked into one program, one takes the other's
// functions and the process crashes before main. So SentencePiece lives behind this C interface, and subwords_library.h
// loads it on first use with its symbols kept to itself. No exception, and nothing of C++ but this table, crosses over.
#pragma once

#include <cstddef>
#include <cstdint>

namespace routing {

inline constexpr int kSubwordsPluginVersion = 1;

// What a call gives: bytes (or ids) that belong to the plug-in until release(), or what went wrong.
struct SubwordsResult {
  const void* data = nullptr;
  std::size_t size = 0;         // of the bytes, or how many ids
  const char* error = nullptr;  // null if all went well; otherwise the two above are empty
  void* owner = nullptr;
};

struct SubwordsTraining {
  const char* lines = nullptr;  // with a line end after each
  std::size_t size = 0;
  std::int32_t vocabulary_size = 0;
  std::int32_t longest_line = 0;  // bytes; longer ones would be skipped
};

struct SubwordsPlugin {
  int version = 0;
  // A model from its bytes; null with an error in the result otherwise. Never prints.
  void* (*load)(const char* model, std::size_t size, SubwordsResult* result) = nullptr;
  void (*unload)(void* model) = nullptr;
  // The ids (std::int32_t) of a text. May be called from several threads.
  void (*encode)(const void* model, const char* text, std::size_t size, SubwordsResult* result) = nullptr;
  // The bytes of a new model.
  void (*train)(const SubwordsTraining* training, SubwordsResult* result) = nullptr;
  void (*release)(SubwordsResult* result) = nullptr;
};

}  // namespace routing

// The one function that the plug-in exports.
extern "C" [[gnu::visibility("default")]] const routing::SubwordsPlugin* routing_subwords_plugin();
