#include "routing/serving/http/wire/header_scan.h"

#include <string>

namespace routing::http {

bool HeaderScan::refuse(int status, const char* message) {
  refusal_ = Refusal{status, message};
  return false;
}

bool HeaderScan::scan(std::string_view bytes) {
  if (refusal_) return false;
  for (; scanned_ < bytes.size(); ++scanned_) {
    const char byte = bytes[scanned_];
    if (scanned_ == most_bytes_) {
      const std::string most = std::to_string(most_bytes_) + " bytes";
      refusal_ = line_ == 0 ? Refusal{414, "the target of the request is longer than " + most}
                            : Refusal{431, "the headers are longer than " + most};
      return false;
    }
    if (after_return_) {
      if (byte != '\n') return refuse(400, "the header has a CR without LF");
      after_return_ = false;
      if (scanned_ == line_ + 1) {
        ++scanned_;
        return true;
      }
      line_ = scanned_ + 1;
    } else if (byte == '\r') {
      after_return_ = true;
    } else if (byte == '\n') {
      return refuse(400, "a line of the header ends with LF alone, not with CR LF");
    } else if ((byte == ' ' || byte == '\t') && scanned_ == line_) {
      return refuse(400, "a line of the header begins with a space; folded lines are not taken");
    } else if ((static_cast<unsigned char>(byte) < 0x20 && byte != '\t') || byte == 0x7f) {
      return refuse(400, "the header has a control character");
    }
  }
  return false;
}

}  // namespace routing::http
