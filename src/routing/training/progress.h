// The text of progress: pure functions, nothing is printed here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace routing {

// Where a run is. What is not known is left out of the text.
struct Progress {
  std::int64_t step = 0;
  std::optional<std::int64_t> total_steps = std::nullopt;  // none for a run that is limited by time
  std::optional<double> score = std::nullopt;
  std::string unit = "bits/byte";  // of the score
  std::optional<double> epochs = std::nullopt;
  std::optional<double> tokens_per_second = std::nullopt;
  double seconds_elapsed = 0.0;
  std::optional<double> seconds_left = std::nullopt;
};

// For a terminal, without line end:
//
//   "  340/1000 [====>       ]  2.41 bits/byte  0.52 epochs  6.1k tokens/s  1:23 left"
//
// The bar shows the steps done, or the time for a run without a number of steps, or is left out if that is unknown as
// well. It takes the room that is left, up to 40 letters. In a narrow terminal first the bar goes, then the epochs, the
// tokens, the loss and the time. Never longer than width - 1 letters: some terminals break the line at their last
// column.
std::string progress_line(const Progress& progress, int terminal_width);

// For files and pipes: "step 340 of 1000: 2.41 bits/byte, 0.52 epochs, 6.1k tokens/s, 0:43 elapsed, 1:23 left".
std::string plain_progress_line(const Progress& progress);

// "0:07", "1:23", "2:03:04", "3d 2:03:04", rounded to seconds; "?" for what is negative or no number.
std::string clock_text(double seconds);

// Two or three digits: "0.5", "6.1", "61", "610", "6.1k", "61k", "6.1M", "6.1G"; "?" for what is negative or no number.
std::string short_count(double count);

}  // namespace routing
