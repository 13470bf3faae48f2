#include "routing/serving/http/wire/request_reader.h"

#include "routing/serving/http/wire/header_scan.h"
#include "routing/serving/http/wire/request_target.h"

#include <algorithm>
#include <array>
#include <boost/beast/http/parser.hpp>
#include <utility>

namespace routing::http {
namespace {

namespace beast = boost::beast;

// Beast's own string_body takes the memory that Content-Length names before a byte of it has come.
struct BodyAsItComes {
  using value_type = std::string;
  class reader {
   public:
    template <bool is_request, class Fields>
    reader(beast::http::header<is_request, Fields>& /*head*/, value_type& body) : body_(body) {}
    static void init(const boost::optional<std::uint64_t>& /*length*/, beast::error_code& error) { error = {}; }
    template <class Buffers>
    std::size_t put(const Buffers& buffers, beast::error_code& error) {
      std::size_t count = 0;
      for (auto it = boost::asio::buffer_sequence_begin(buffers); it != boost::asio::buffer_sequence_end(buffers);
           ++it) {
        const boost::asio::const_buffer buffer = *it;
        body_.append(static_cast<const char*>(buffer.data()), buffer.size());
        count += buffer.size();
      }
      error = {};
      return count;
    }
    static void finish(beast::error_code& error) { error = {}; }

   private:
    value_type& body_;
  };
};

using Parser = beast::http::request_parser<BodyAsItComes>;

constexpr std::size_t kFraming = 8;
// The shortest chunked body is "0\r\n\r\n". Shown only a part of it for the second time, Beast fails an assertion of
// its own.
constexpr std::size_t kShortestChunks = 5;

std::string in_small_letters(std::string_view text) {
  std::string small(text);
  for (char& letter : small) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return small;
}

// host [":" port], as it stands in a URL: a name, IPv4, or IPv6 in brackets.
bool is_host(std::string_view text) {
  constexpr std::string_view kOthers = "-._~%!$&'()*+,;=:[]";
  return std::all_of(text.begin(), text.end(), [&](char letter) {
    return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           kOthers.find(letter) != std::string_view::npos;
  });
}

bool names_another_version(std::string_view header) {
  const std::string_view line = header.substr(0, header.find('\r'));
  const std::size_t space = line.rfind(' ');
  if (space == std::string_view::npos) return false;
  const std::string_view version = line.substr(space + 1);
  const auto is_digit = [](char letter) { return letter >= '0' && letter <= '9'; };
  return version.size() == 8 && version.starts_with("HTTP/") && is_digit(version[5]) && version[6] == '.' &&
         is_digit(version[7]) && version != "HTTP/1.1" && version != "HTTP/1.0";
}

Refusal refusal_of_header(const beast::error_code& reason, std::string_view header) {
  using beast::http::error;
  if (reason == error::bad_version && names_another_version(header)) {
    return {505, "this server speaks HTTP/1.1 and HTTP/1.0"};
  }
  if (reason == error::bad_content_length)
    return {400, "Content-Length is not one number, or beside Transfer-Encoding"};
  if (reason == error::bad_transfer_encoding) return {400, "Transfer-Encoding comes twice, or beside Content-Length"};
  if (reason == error::bad_method || reason == error::bad_target || reason == error::bad_version) {
    return {400, "the first line is not METHOD TARGET HTTP/1.1"};
  }
  return {400, "a line of the header is not NAME: VALUE"};
}

}  // namespace

class RequestReader::Impl {
 public:
  Impl(std::size_t most_header_bytes, std::size_t most_body_bytes)
      : most_header_bytes_(most_header_bytes), most_body_bytes_(most_body_bytes), scan_(most_header_bytes) {
    parser_.eager(true);
    parser_.body_limit(most_body_bytes);
    parser_.header_limit(static_cast<std::uint32_t>(most_header_bytes) + 1);
  }

  std::size_t read(std::string_view bytes) {
    if (state_ == State::body) return read_body_bytes(bytes);
    if (state_ != State::header) return 0;
    std::size_t skipped = 0;
    while (!begun_ && bytes.starts_with("\r\n")) {
      bytes.remove_prefix(2);
      skipped += 2;
    }
    skipped_ += skipped;
    if (skipped_ > most_header_bytes_) {
      refuse(431, "nothing but empty lines");
      return skipped;
    }
    // A CR alone may be half of an empty line.
    if (bytes.empty() || (!begun_ && bytes == "\r")) return skipped;
    begun_ = true;
    const bool whole = scan_.scan(bytes);
    if (scan_.refusal()) {
      refuse(scan_.refusal()->status, scan_.refusal()->message);
    } else if (whole) {
      read_header(bytes.substr(0, scan_.size()));
      return skipped + scan_.size();
    }
    return skipped;
  }

  void begin_body() {
    if (state_ != State::head) return;
    state_ = parser_.is_done() ? State::complete : State::body;
  }

  void refuse(int status, std::string message) {
    state_ = State::refused;
    refusal_ = {status, std::move(message)};
  }

  State state_ = State::header;
  bool begun_ = false, keeps_alive_ = false, expects_continue_ = false;
  Refusal refusal_;
  Request request_;
  Parser parser_;

 private:
  void read_header(std::string_view header) {
    beast::error_code error;
    // Without eager reading it would stop after the header; there is nothing else in these bytes.
    const std::size_t taken = parser_.put(boost::asio::buffer(header.data(), header.size()), error);
    // Of a chunked body it would like to see the first chunk.
    if (error && !(error == beast::http::error::need_more && parser_.is_header_done())) {
      if (error == beast::http::error::body_limit) return refuse_length();
      const Refusal refusal = refusal_of_header(error, header);
      return refuse(refusal.status, refusal.message);
    }
    if (taken != header.size() || !parser_.is_header_done()) return refuse(400, "the header ends in its middle");
    const auto& head = parser_.get();
    request_.method = std::string(head.method_string());
    request_.minor_version = static_cast<int>(head.version() % 10);
    for (const auto& field : head) {
      request_.headers.emplace_back(in_small_letters({field.name_string().data(), field.name_string().size()}),
                                    std::string(field.value()));
    }
    std::optional<Refusal> refusal = check_headers();
    if (!refusal) refusal = check_target({head.target().data(), head.target().size()});
    if (!refusal) refusal = check_body();
    if (refusal) return refuse(refusal->status, refusal->message);
    keeps_alive_ = parser_.keep_alive();
    state_ = State::head;
  }

  std::optional<Refusal> check_headers() {
    for (const char* name :
         {"authorization", "content-length", "content-type", "expect", "host", "origin", "transfer-encoding"}) {
      const auto count = std::count_if(request_.headers.begin(), request_.headers.end(),
                                       [&](const auto& header) { return header.first == name; });
      if (count > 1) return Refusal{400, std::string("the header ") + name + " comes more than once"};
    }
    const std::optional<std::string> host = request_.header("host");
    if (!host && request_.minor_version > 0) return Refusal{400, "the header Host is missing"};
    if (host && !is_host(*host)) return Refusal{400, "the header Host is no name of a host"};
    if (const std::optional<std::string> expectation = request_.header("expect")) {
      if (!same_word(*expectation, "100-continue")) return Refusal{417, "Expect can only be 100-continue"};
      expects_continue_ = request_.minor_version > 0;
    }
    return std::nullopt;
  }

  std::optional<Refusal> check_target(std::string_view text) {
    if (request_.method == "CONNECT" || request_.method == "TRACE") {
      return Refusal{405, "the method " + request_.method + " is not for this server"};
    }
    Target target;
    if (std::optional<Refusal> refusal = read_target(request_.method, text, target)) return refusal;
    request_.path = std::move(target.path);
    request_.segments = std::move(target.segments);
    request_.query = std::move(target.query);
    if (target.authority.empty()) return std::nullopt;
    if (!is_host(target.authority)) return Refusal{400, "the target of the request names no host"};
    // What the header says then does not count.
    std::erase_if(request_.headers, [](const auto& header) { return header.first == "host"; });
    request_.headers.emplace_back("host", std::move(target.authority));
    return std::nullopt;
  }

  std::optional<Refusal> check_body() const {
    const std::optional<std::string> length = request_.header("content-length");
    const std::optional<std::string> coding = request_.header("transfer-encoding");
    if (length && coding) return Refusal{400, "Content-Length stands beside Transfer-Encoding"};
    if (length && !std::all_of(length->begin(), length->end(), [](char c) { return c >= '0' && c <= '9'; })) {
      return Refusal{400, "Content-Length is not one number"};
    }
    if (!coding) return std::nullopt;
    if (request_.minor_version == 0) return Refusal{400, "HTTP/1.0 has no Transfer-Encoding"};
    if (!same_word(*coding, "chunked")) return Refusal{501, "the only Transfer-Encoding taken is chunked"};
    return std::nullopt;
  }

  void refuse_length() { refuse(413, "the body is larger than " + std::to_string(most_body_bytes_) + " bytes"); }

  std::size_t read_body_bytes(std::string_view bytes) {
    if (left_over_ && bytes.starts_with('0') && bytes.size() < kShortestChunks) return 0;
    std::size_t taken = 0;
    while (taken < bytes.size() && !parser_.is_done()) {
      beast::error_code error;
      const std::size_t count = parser_.put(boost::asio::buffer(bytes.data() + taken, bytes.size() - taken), error);
      taken += count;
      if (error == beast::http::error::need_more || (!error && count == 0)) break;
      if (error == beast::http::error::body_limit) return refuse_length(), taken;
      if (error) return refuse(400, "the body is not chunked as it says"), taken;
    }
    taken_ += taken;
    left_over_ = taken < bytes.size();
    if (parser_.is_done()) {
      request_.body = std::move(parser_.get().body());
      state_ = State::complete;
    } else if (bytes.size() - taken > most_header_bytes_) {
      refuse(431,
             "the size of a chunk, or the trailer, is longer than " + std::to_string(most_header_bytes_) + " bytes");
    } else if (taken_ > kFraming * most_body_bytes_ + most_header_bytes_) {
      refuse(413, "the chunks of the body are mostly not body");
    }
    return taken;
  }

  std::size_t most_header_bytes_, most_body_bytes_;
  HeaderScan scan_;
  std::size_t skipped_ = 0, taken_ = 0;
  bool left_over_ = false;  // bytes that will be shown again
};

RequestReader::RequestReader(std::size_t most_header_bytes, std::size_t most_body_bytes)
    : impl_(std::make_unique<Impl>(most_header_bytes, most_body_bytes)) {}
RequestReader::~RequestReader() = default;

std::size_t RequestReader::read(std::string_view bytes) {
  return impl_->read(bytes);
}
void RequestReader::read_body() {
  impl_->begin_body();
}
RequestReader::State RequestReader::state() const {
  return impl_->state_;
}
bool RequestReader::begun() const {
  return impl_->begun_;
}
bool RequestReader::has_body() const {
  return !impl_->parser_.is_done();
}
bool RequestReader::expects_continue() const {
  return impl_->expects_continue_ && has_body();
}
bool RequestReader::keeps_alive() const {
  return impl_->keeps_alive_;
}
Request& RequestReader::request() {
  return impl_->request_;
}
std::size_t RequestReader::body_bytes() const {
  return impl_->parser_.get().body().size();
}
const Refusal& RequestReader::refusal() const {
  return impl_->refusal_;
}

}  // namespace routing::http
