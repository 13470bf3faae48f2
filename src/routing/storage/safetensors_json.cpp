#include "routing/storage/safetensors_json.h"

#include "routing/core/utf8.h"

#include <nlohmann/json.hpp>

#include <limits>
#include <set>

namespace routing {
namespace {

using Json = nlohmann::json;

// Receives the events of the parser and accepts only what a header may hold at that place.
class HeaderEvents final : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderEvents(const std::function<void(const std::string&)>& fail) : fail_(fail) {}

  SafetensorsHeader take() { return std::move(header_); }

  bool null() override { return misfit("null"); }
  bool boolean(bool value) override { return misfit(value ? "true" : "false"); }
  bool number_float(number_float_t /*value*/, const string_t& text) override { return misfit("the number " + text); }
  bool binary(binary_t& /*value*/) override { return misfit("binary data"); }
  bool number_integer(number_integer_t value) override {
    return misfit("the negative number " + std::to_string(value));
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::shape) {
      if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        return refuse(tensor() + " has a side of " + std::to_string(value) + ", more than any tensor can have");
      }
      if (entry_.shape.size() == kMaxTensorRank) {
        return refuse(tensor() + " has more than " + std::to_string(kMaxTensorRank) + " dimensions");
      }
      entry_.shape.push_back(static_cast<std::int64_t>(value));
      return true;
    }
    if (place_ == Place::offsets) {
      if (num_offsets_ == 2) return refuse(tensor() + " has more than two data_offsets");
      (num_offsets_ == 0 ? entry_.begin : entry_.end) = value;
      ++num_offsets_;
      return true;
    }
    return misfit("the number " + std::to_string(value));
  }

  bool string(string_t& value) override {
    if (place_ == Place::dtype) {
      entry_.dtype = value;
      place_ = Place::entry;
      return true;
    }
    if (place_ == Place::metadata_value) {
      header_.metadata[metadata_key_] = value;
      place_ = Place::metadata;
      return true;
    }
    return misfit("the text " + quoted_name(value));
  }

  bool start_object(std::size_t /*size*/) override {
    switch (place_) {
      case Place::before:
        place_ = Place::root;
        return true;
      case Place::entry_value:
        place_ = Place::entry;
        return true;
      case Place::metadata_object:
        place_ = Place::metadata;
        return true;
      default:
        return misfit("an object");
    }
  }

  bool key(string_t& name) override {
    if (place_ == Place::root) return root_key(name);
    if (place_ == Place::metadata) {
      metadata_key_ = name;
      place_ = Place::metadata_value;
      if (!header_.metadata.emplace(name, "").second) {
        return refuse("the key " + quoted_name(name) + " of __metadata__ is there twice");
      }
      return true;
    }
    return entry_key(name);
  }

  bool end_object() override {
    if (place_ == Place::entry) {
      for (const char* field : {"dtype", "shape", "data_offsets"}) {
        if (!fields_.contains(field)) return refuse(tensor() + " has no " + field);
      }
      header_.entries.push_back(std::move(entry_));
    }
    // Only the root, an entry and the metadata can end: the place is that of an open object.
    place_ = Place::root;
    return true;
  }

  bool start_array(std::size_t /*size*/) override {
    if (place_ == Place::shape_array) {
      place_ = Place::shape;
      return true;
    }
    if (place_ == Place::offsets_array) {
      place_ = Place::offsets;
      return true;
    }
    return misfit("an array");
  }

  bool end_array() override {
    if (place_ == Place::offsets && num_offsets_ != 2) {
      return refuse(tensor() + " has " + std::to_string(num_offsets_) + " data_offsets instead of two");
    }
    place_ = Place::entry;
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*token*/, const Json::exception& /*error*/) override {
    return refuse("the header is not a JSON object: it goes wrong at its byte " + std::to_string(position));
  }

 private:
  // What may come next.
  enum class Place {
    before,           // the root object
    root,             // a name or the end
    entry_value,      // the object of a tensor
    entry,            // a field or the end
    dtype,            // its text
    shape_array,      // the array itself
    shape,            // a side or the end
    offsets_array,    // the array itself
    offsets,          // an offset or the end
    metadata_object,  // the object itself
    metadata,         // a key or the end
    metadata_value,   // its text
  };

  bool root_key(const std::string& name) {
    if (!names_.insert(name).second) return refuse("the name " + quoted_name(name) + " is there twice");
    if (name == kSafetensorsMetadataKey) {
      place_ = Place::metadata_object;
      return true;
    }
    entry_ = {};
    entry_.name = name;
    fields_.clear();
    num_offsets_ = 0;
    place_ = Place::entry_value;
    return true;
  }

  bool entry_key(const std::string& name) {
    if (!fields_.insert(name).second) return refuse(tensor() + " has the field " + quoted_name(name) + " twice");
    if (name == "dtype") {
      place_ = Place::dtype;
    } else if (name == "shape") {
      place_ = Place::shape_array;
    } else if (name == "data_offsets") {
      place_ = Place::offsets_array;
    } else {
      return refuse(tensor() + " has the unknown field " + quoted_name(name) +
                    "; only dtype, shape and data_offsets are known");
    }
    return true;
  }

  // The value just met does not belong here.
  bool misfit(const std::string& found) {
    switch (place_) {
      case Place::entry_value:
        return refuse(tensor() + " must be an object of dtype, shape and data_offsets, but is " + found);
      case Place::dtype:
        return refuse(tensor() + ": dtype must be a text, but is " + found);
      case Place::shape_array:
      case Place::shape:
        return refuse(tensor() + ": shape must be an array of integers from 0 on, but holds " + found);
      case Place::offsets_array:
      case Place::offsets:
        return refuse(tensor() + ": data_offsets must be two integers from 0 on, but hold " + found);
      case Place::metadata_object:
        return refuse("__metadata__ must be an object of texts, but is " + found);
      case Place::metadata_value:
        return refuse("the key " + quoted_name(metadata_key_) + " of __metadata__ must be a text, but is " + found);
      default:
        return refuse("the header is not a JSON object, but " + found);
    }
  }

  bool refuse(const std::string& what) {
    fail_(what);
    return false;
  }

  std::string tensor() const { return "tensor " + quoted_name(entry_.name); }

  const std::function<void(const std::string&)>& fail_;
  SafetensorsHeader header_;
  SafetensorsEntry entry_;  // the one being read
  std::string metadata_key_;
  std::set<std::string> names_;
  std::set<std::string> fields_;  // of entry_
  int num_offsets_ = 0;
  Place place_ = Place::before;
};

}  // namespace

SafetensorsHeader parse_safetensors_json(std::string_view text, const std::function<void(const std::string&)>& fail) {
  if (text.empty() || text.front() != '{') fail("the header does not begin with '{'");
  // The parser takes a zero byte for the end of the text and would not see what follows.
  const std::size_t zero = text.find('\0');
  if (zero != std::string_view::npos) fail("the header holds a zero byte at its byte " + std::to_string(zero));
  if (const auto position = first_invalid_utf8(text)) {
    fail("the header is not UTF-8 at its byte " + std::to_string(*position));
  }
  HeaderEvents events(fail);
  Json::sax_parse(text, &events);
  return events.take();
}

}  // namespace routing
