// Which bytes or images of a source make up train, valid and test, when it does not bring all three.
//
//   all three        as they are
//   one part only    cut by data.split; for evaluation, a part called valid or test stays whole
//   no valid         the last 2 % of train are valid: images come so
//   no test          the second half of valid is test
//   no train         the first 90 % of valid are train, if one is needed; otherwise it is empty
//
// Text is counted in bytes and cut at lines: a line belongs to where it begins. Images are cut as a whole.
#pragma once

#include "routing/data/sources/source.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace routing {

inline constexpr std::int64_t kToTheEnd = std::numeric_limits<std::int64_t>::max();

struct Cut {
  std::string name;  // train, valid or test
  std::string from;  // the part of the source it is cut from
  std::int64_t begin = 0;
  std::int64_t end = 0;  // in bytes or images of that part; kToTheEnd for all that is left
  friend bool operator==(const Cut&, const Cut&) = default;
};

struct CutPlan {
  std::vector<Cut> cuts;  // train, valid, test; some may be empty
  std::string note;       // what was cut, as one line: "valid is the last 2 % of train"; empty if nothing was
};

struct CutRule {
  std::string split = "90%/5%/5%";  // data.split
  bool train_needed = true;         // false for evaluation, which wants all of valid
};

// size_of gives the bytes or images of a part that is there; it is asked only for what has to be cut. A ConfigError if
// nothing is left for a train that is needed.
CutPlan plan_cuts(const SourceFacts& facts, const std::function<std::int64_t(const std::string&)>& size_of,
                  const CutRule& rule);

// The bytes of a part, by reading it.
std::int64_t text_bytes(const TextSource& source, const std::string& part);

// The lines of the source that the cut holds.
void read_cut(const TextSource& source, const Cut& cut, const TextSink& sink);
// The images that it holds.
void read_cut(const ImageSource& source, const Cut& cut, const ImageSink& sink);

}  // namespace routing
