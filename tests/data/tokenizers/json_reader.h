// Reads a tokenizer.json as its format says, for the parts that we write: independent of our tokenisers, and of the
// library that the format belongs to.
#pragma once

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <queue>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace routing {

class JsonReader {
 public:
  explicit JsonReader(const std::string& file) : json_(nlohmann::json::parse(file)) {
    const auto& model = json_.at("model");
    if (model.at("type") == "Unigram") {
      for (const auto& entry : model.at("vocab")) {
        ids_.emplace(entry.at(0), static_cast<std::int32_t>(scores_.size()));
        scores_.push_back(entry.at(1));
      }
    } else {
      for (const auto& [token, id] : model.at("vocab").items()) ids_.emplace(token, id);
    }
    if (model.at("type") == "BPE") {
      for (const auto& merge : model.at("merges")) {
        const std::string pair = merge;
        const std::size_t space = pair.find(' ');
        const std::string left = pair.substr(0, space);
        const std::string right = pair.substr(space + 1);
        merges_.emplace(std::pair(ids_.at(left), ids_.at(right)), std::pair(merges_.size(), ids_.at(left + right)));
      }
    }
  }

  std::vector<std::int32_t> ids(const std::string& text) const {
    std::vector<std::int32_t> all;
    for (const std::string& part : split_by(json_.at("pre_tokenizer"), {normalised(json_.at("normalizer"), text)})) {
      for (const std::int32_t id : model_ids(part)) all.push_back(id);
    }
    return all;
  }

 private:
  using Json = nlohmann::json;
  using Match = std::pair<std::size_t, std::size_t>;  // where, how long

  static std::size_t run_of(const std::string& text, std::size_t at, std::string_view letters) {
    return std::min(text.find_first_not_of(letters, at), text.size()) - at;
  }

  // The length of the match that begins at a place; 0 if there is none.
  static std::size_t match_at(const Json& pattern, const std::string& text, std::size_t at) {
    if (pattern.contains("String")) {
      const std::string wanted = pattern.at("String");
      return text.compare(at, wanted.size(), wanted) == 0 ? wanted.size() : 0;
    }
    const std::string regex = pattern.at("Regex");
    if (regex == R"([ \t\r\x0B\x0C]+)") return run_of(text, at, " \t\r\x0B\x0C");
    const std::size_t spaces = run_of(text, at, " ");
    if (regex == " {2,}") return spaces >= 2 ? spaces : 0;
    if (regex == R"(\A +| +\z)") return at == 0 || at + spaces == text.size() ? spaces : 0;
    if (regex == "\n +") {
      const std::size_t after = text[at] == '\n' ? run_of(text, at + 1, " ") : 0;
      return after == 0 ? 0 : after + 1;
    }
    if (regex == "<(?=0x[0-9A-F]{2}>)") {
      const bool is_byte = text.compare(at, 3, "<0x") == 0 && at + 5 < text.size() && text[at + 5] == '>' &&
                           text.find_first_not_of("0123456789ABCDEF", at + 3) == at + 5;
      return is_byte ? 1 : 0;
    }
    if (regex == "\n(?=[\\s\\S])") return text[at] == '\n' && at + 1 < text.size() ? 1 : 0;
    throw std::runtime_error("a pattern that this reader does not know: " + regex);
  }

  static std::vector<Match> matches(const Json& pattern, const std::string& text) {
    std::vector<Match> found;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = match_at(pattern, text, at);
      if (length > 0) found.emplace_back(at, length);
      at += std::max<std::size_t>(1, length);
    }
    return found;
  }

  static std::string normalised(const Json& step, std::string text) {
    if (step.is_null()) return text;
    const std::string type = step.at("type");
    if (type == "Sequence") {
      for (const Json& one : step.at("normalizers")) text = normalised(one, text);
      return text;
    }
    if (type == "Prepend") return text.empty() ? text : step.at("prepend").get<std::string>() + text;
    if (type == "Precompiled") return mapped(decoded(step.at("precompiled_charsmap")), text);
    if (type != "Replace") throw std::runtime_error("a normalizer that this reader does not know: " + type);
    std::string result;
    std::size_t done = 0;
    for (const auto& [at, length] : matches(step.at("pattern"), text)) {
      result += text.substr(done, at - done) + step.at("content").get<std::string>();
      done = at + length;
    }
    return result + text.substr(done);
  }

  static std::vector<std::string> split_by(const Json& step, const std::vector<std::string>& texts) {
    const std::string type = step.at("type");
    if (type == "Sequence") {
      std::vector<std::string> parts = texts;
      for (const Json& one : step.at("pretokenizers")) parts = split_by(one, parts);
      return parts;
    }
    std::vector<std::string> parts;
    for (const std::string& text : texts) {
      if (type == "ByteLevel") {
        parts.push_back(byte_letters(text));
        continue;
      }
      if (type != "Split") throw std::runtime_error("a pre-tokenizer that this reader does not know: " + type);
      const std::string behaviour = step.at("behavior");
      std::size_t done = 0;
      const auto add = [&](std::size_t end) {
        if (end > done) parts.push_back(text.substr(done, end - done));
        done = end;
      };
      for (const auto& [at, length] : matches(step.at("pattern"), text)) {
        if (behaviour == "MergedWithPrevious") {
          add(at + length);
        } else {
          add(at);
          if (behaviour == "Isolated") parts.push_back(text.substr(at, length));
          done = at + length;
        }
      }
      add(text.size());
    }
    return parts;
  }

  // Bytes that are no visible letters of Latin-1 are written as U+0100 and so on, in their order.
  static std::string byte_letters(const std::string& text) {
    std::map<int, int> hidden;
    for (int byte = 0; byte < 256; ++byte) {
      if (byte < 33 || (byte > 126 && byte < 161) || byte == 173) hidden.emplace(byte, 256 + hidden.size());
    }
    std::string letters;
    for (const char letter : text) {
      const int byte = static_cast<unsigned char>(letter);
      const int code = hidden.count(byte) == 1 ? hidden.at(byte) : byte;
      if (code < 128) {
        letters += static_cast<char>(code);
      } else {
        letters += static_cast<char>(0xC0 + code / 64);
        letters += static_cast<char>(0x80 + code % 64);
      }
    }
    return letters;
  }

  static std::string decoded(const std::string& base64) {
    const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string bytes;
    unsigned bits = 0;
    int count = 0;
    for (const char digit : base64) {
      if (digit == '=') break;
      bits = bits << 6U | static_cast<unsigned>(digits.find(digit));
      count += 6;
      if (count >= 8) bytes += static_cast<char>(bits >> static_cast<unsigned>(count -= 8) & 255U);
    }
    return bytes;
  }

  // A map of characters: the size of a double-array trie, the trie, and what its values point to, ended by NUL. The
  // longest beginning of the text that the trie has is replaced; a character that begins nothing stays.
  static std::string mapped(const std::string& map, const std::string& text) {
    std::uint32_t size = 0;
    std::memcpy(&size, map.data(), 4);
    std::vector<std::uint32_t> units(size / 4);
    std::memcpy(units.data(), map.data() + 4, size);
    const auto offset = [](std::uint32_t unit) { return unit >> 10U << ((unit & 512U) >> 6U); };
    std::string result;
    for (std::size_t at = 0; at < text.size();) {
      std::size_t node = offset(units[0]);
      std::size_t longest = 0;
      std::uint32_t value = 0;
      for (std::size_t end = at; end < text.size();) {
        const auto byte = static_cast<unsigned char>(text[end++]);
        node ^= byte;
        const std::uint32_t unit = units[node];
        if ((unit & 0x800000FFU) != byte) break;
        node ^= offset(unit);
        if ((unit & 256U) == 0) continue;
        value = units[node] & 0x7FFFFFFFU;
        longest = end - at;
      }
      if (longest > 0) {
        result += map.c_str() + 4 + size + value;
        at += longest;
      } else {
        const std::size_t length = character_length(text, at);
        result += text.substr(at, length);
        at += length;
      }
    }
    return result;
  }

  static std::size_t character_length(const std::string& text, std::size_t at) {
    std::size_t end = at + 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) ++end;
    return end - at;
  }

  std::vector<std::int32_t> model_ids(const std::string& part) const {
    const std::string type = json_.at("model").at("type");
    if (type == "WordLevel") {
      const auto found = ids_.find(part);
      return {found != ids_.end() ? found->second : ids_.at(json_.at("model").at("unk_token"))};
    }
    return type == "BPE" ? bpe(part) : unigram(part);
  }

  // Ids of the bytes of a text, if there are such tokens.
  bool append_bytes(const std::string& text, std::vector<std::int32_t>& ids) const {
    if (!json_.at("model").at("byte_fallback").get<bool>()) return false;
    std::vector<std::int32_t> bytes;
    for (const char letter : text) {
      char name[8];
      std::snprintf(name, sizeof(name), "<0x%02X>", static_cast<unsigned>(static_cast<unsigned char>(letter)));
      const auto found = ids_.find(name);
      if (found == ids_.end()) return false;
      bytes.push_back(found->second);
    }
    ids.insert(ids.end(), bytes.begin(), bytes.end());
    return true;
  }

  std::vector<std::int32_t> bpe(const std::string& part) const {
    std::vector<std::int32_t> symbols;
    bool unknown_before = false;
    for (std::size_t at = 0; at < part.size();) {
      const std::string character = part.substr(at, character_length(part, at));
      at += character.size();
      const auto found = ids_.find(character);
      const bool known = found != ids_.end();
      if (known) {
        symbols.push_back(found->second);
      } else if (append_bytes(character, symbols)) {
        continue;
      } else if (!unknown_before || !json_.at("model").at("fuse_unk").get<bool>()) {
        symbols.push_back(ids_.at(json_.at("model").at("unk_token")));
      }
      unknown_before = !known;
    }
    // The pair of the lowest rank is merged, the leftmost of several, until there is none.
    using Entry = std::tuple<std::size_t, std::size_t, std::int32_t, std::int32_t>;  // rank, place, the pair
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    std::vector<std::size_t> next(symbols.size() + 1);
    std::vector<std::size_t> before(symbols.size() + 1);
    const auto offer = [&](std::size_t left) {
      if (left >= symbols.size() || next[left] >= symbols.size()) return;
      const auto found = merges_.find({symbols[left], symbols[next[left]]});
      if (found != merges_.end()) queue.emplace(found->second.first, left, symbols[left], symbols[next[left]]);
    };
    constexpr std::int32_t kGone = -1;
    for (std::size_t i = 0; i <= symbols.size(); ++i) {
      next[i] = i + 1;
      before[i] = i - 1;
    }
    for (std::size_t i = 0; i < symbols.size(); ++i) offer(i);
    while (!queue.empty()) {
      const auto [rank, left, first, second] = queue.top();
      queue.pop();
      const std::size_t right = next[left];
      if (symbols[left] != first || right >= symbols.size() || symbols[right] != second) continue;
      symbols[left] = merges_.at({first, second}).second;
      symbols[right] = kGone;
      next[left] = next[right];
      if (next[right] < symbols.size()) before[next[right]] = left;
      offer(left);
      if (left > 0) offer(before[left]);
    }
    symbols.erase(std::remove(symbols.begin(), symbols.end(), kGone), symbols.end());
    return symbols;
  }

  // The cut with the best sum of scores. A character that is no token itself may be unknown.
  std::vector<std::int32_t> unigram(const std::string& part) const {
    struct Best {
      double score = -std::numeric_limits<double>::infinity();
      std::size_t from = 0;
      std::int32_t id = 0;
    };
    const std::int32_t unknown = json_.at("model").at("unk_id");
    const double unknown_score = *std::min_element(scores_.begin(), scores_.end()) - 10.0;
    std::size_t longest = 0;
    for (const auto& [token, id] : ids_) longest = std::max(longest, token.size());
    std::vector<Best> best(part.size() + 1);
    best[0].score = 0.0;
    for (std::size_t at = 0; at < part.size(); at += character_length(part, at)) {
      const std::size_t one = character_length(part, at);
      const auto reach = [&](std::size_t length, std::int32_t id, double score) {
        Best& place = best[at + length];
        if (best[at].score + score > place.score) place = {best[at].score + score, at, id};
      };
      bool single = false;
      for (std::size_t length = 1; length <= std::min(longest, part.size() - at); ++length) {
        const auto found = ids_.find(part.substr(at, length));
        if (found == ids_.end()) continue;
        reach(length, found->second, scores_[static_cast<std::size_t>(found->second)]);
        single = single || length == one;
      }
      if (!single) reach(one, unknown, unknown_score);
    }
    std::vector<std::pair<std::string, std::int32_t>> path;
    for (std::size_t end = part.size(); end > 0; end = best[end].from) {
      const std::string text = part.substr(best[end].from, end - best[end].from);
      if (!path.empty() && path.back().second == unknown && best[end].id == unknown) {
        path.back().first = text + path.back().first;  // neighbours are one
      } else {
        path.emplace_back(text, best[end].id);
      }
    }
    std::vector<std::int32_t> ids;
    for (auto step = path.rbegin(); step != path.rend(); ++step) {
      if (step->second != unknown || !append_bytes(step->first, ids)) ids.push_back(step->second);
    }
    return ids;
  }

  Json json_;
  std::unordered_map<std::string, std::int32_t> ids_;
  std::vector<double> scores_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::pair<std::size_t, std::int32_t>> merges_;
};

}  // namespace routing
