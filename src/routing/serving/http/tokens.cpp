#include "routing/serving/http/tokens.h"

#include "routing/core/error.h"
#include "routing/core/files.h"
#include "routing/serving/http/wire/message.h"

#include <algorithm>
#include <cstddef>
#include <iomanip>
#include <sstream>
#include <sys/stat.h>

namespace routing::http {
namespace {

constexpr std::size_t kShortest = 16;

void require_private(const std::filesystem::path& path) {
  struct stat state {};
  // What cannot be looked at cannot be read either; reading says why.
  if (::stat(path.c_str(), &state) != 0) return;
  require<FileError>(S_ISREG(state.st_mode), path.string(),
                     ": is no ordinary file; name one with a token on each line");
  constexpr mode_t kOthers = 077;
  std::ostringstream mode;
  mode << std::oct << std::setw(4) << std::setfill('0') << (state.st_mode & 07777U);
  require<FileError>((state.st_mode & kOthers) == 0, path.string(), ": others may read or change it (mode ", mode.str(),
                     "), so its tokens are no secret; chmod 600 ", path.string());
}

}  // namespace

std::vector<std::string> read_tokens(const std::filesystem::path& path) {
  require_private(path);
  std::istringstream lines(read_file(path));
  std::vector<std::string> tokens;
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty() || line.front() == '#') continue;
    require<FileError>(std::all_of(line.begin(), line.end(), [](char c) { return c > 0x20 && c < 0x7f; }),
                       path.string(), ": line ", number,
                       ": a token has a space or another character that is not visible ASCII; take letters and digits");
    require<FileError>(line.size() >= kShortest, path.string(), ": line ", number, ": a token of ", line.size(),
                       " characters can be guessed; take at least ", kShortest, ", say of `openssl rand -hex 24`");
    tokens.push_back(line);
  }
  require<FileError>(!tokens.empty(), path.string(), ": has no token; write one into it, at least ", kShortest,
                     " characters long");
  return tokens;
}

bool token_matches(std::string_view authorization, std::string_view token) {
  const std::size_t space = authorization.find(' ');
  if (space == std::string_view::npos || !same_word(authorization.substr(0, space), "Bearer")) return false;
  authorization.remove_prefix(std::min(authorization.find_first_not_of(' ', space), authorization.size()));
  if (token.empty()) return false;
  // Every character is looked at, whichever differs; volatile keeps the compiler from stopping early.
  volatile unsigned difference = authorization.size() == token.size() ? 0 : 1;
  for (std::size_t i = 0; i < authorization.size(); ++i) {
    const auto shown = static_cast<unsigned char>(authorization[i]);
    const auto wanted = static_cast<unsigned char>(token[i % token.size()]);
    difference = difference | (static_cast<unsigned>(shown) ^ wanted);
  }
  return difference == 0;
}

}  // namespace routing::http
