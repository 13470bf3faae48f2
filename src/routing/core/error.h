// Errors of the library. A message says which thing, the two values, and what to do; the type says whose fault it is.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace routing {

// Base of everything the library throws on purpose.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The configuration asks for something that cannot be; the command line ends with exit code 2.
class ConfigError : public Error {
 public:
  using Error::Error;
};

// A caller handed over tensors or numbers that do not fit together.
class InputError : public Error {
 public:
  using Error::Error;
};

// A file could not be written or read.
class FileError : public Error {
 public:
  using Error::Error;
};

// Throws Kind with all parts written one after the other, unless the condition holds.
template <class Kind, class... Parts>
void require(bool condition, const Parts&... parts) {
  if (condition) return;
  std::ostringstream message;
  (message << ... << parts);
  throw Kind(message.str());
}

}  // namespace routing
