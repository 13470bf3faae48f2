// Texts as the calls that start programs take them.
#pragma once

#include <string>
#include <vector>

namespace routing {

// Pointers to the texts, and a null after them; as long-lived as the texts.
inline std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> list;
  list.reserve(texts.size() + 1);
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

}  // namespace routing
