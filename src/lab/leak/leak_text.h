// The leak report as text: tables for people, rows for spreadsheets, JSON for programs.
//
// Numbers are bits per byte or bits per dimension for bytes and images, nats per token for words and subwords; an
// interval is written 2.513 ± 0.041.
#pragma once

#include "lab/leak/leak_report.h"

#include <string>

namespace routing {

struct LeakUnit {
  std::string name;     // "bits/byte"
  double factor = 1.0;  // of nats
};
LeakUnit leak_unit(TokenKind tokens);

// Where the figures come from, as the reader should know it; all may be empty.
struct LeakSource {
  std::string data = {};   // "the test part of enwik8"
  std::string label = {};  // "partial data"
};

// Three tables: the three likelihoods of each selection, the share of its gain that is leak, and the leak by quarter of
// the window.
std::string leak_markdown(const LeakReport& report, const LeakSource& source = {});
// A row per number, with header: selection, quarter (0 is the whole window), measure, mean, low, high, deviation,
// values, unit.
std::string leak_csv(const LeakReport& report);
// One line; numbers that do not exist are null.
std::string leak_json(const LeakReport& report, const LeakSource& source = {});

}  // namespace routing
