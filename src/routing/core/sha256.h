// SHA-256 (FIPS 180-4), as sha256sum prints it: for checksums that others check with what every system has.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace routing {

// 64 hexadecimal digits.
std::string sha256(std::span<const std::byte> bytes);

}  // namespace routing
