// Who may ask: tokens, hosts and origins.
#include "routing/core/error.h"
#include "routing/serving/http/access_policy.h"
#include "routing/serving/http/tokens.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace routing::http::access_test {
namespace {

namespace fs = std::filesystem;

const std::string kToken = "0123456789abcdefghij";

TEST(Tokens, MatchOnlyWhole) {
  EXPECT_TRUE(token_matches("Bearer " + kToken, kToken));
  EXPECT_TRUE(token_matches("bearer   " + kToken, kToken)) << "the scheme has no case";
  for (const std::string& shown :
       {std::string(), std::string("Bearer"), std::string("Bearer "), kToken, "Basic " + kToken, "Bearer" + kToken,
        "Bearer " + kToken + "x", "Bearer " + kToken.substr(1), "Bearer " + kToken.substr(0, 19),
        "Bearer " + kToken + kToken, "Bearer " + kToken + " ", "Bearer x" + kToken.substr(1),
        "Bearer " + kToken.substr(0, 19) + "x", std::string("Bearer 0123456789ABCDEFGHIJ")}) {
    EXPECT_FALSE(token_matches(shown, kToken)) << shown;
  }
  EXPECT_FALSE(token_matches("Bearer ", "")) << "no token is not a token";
}

// One different character at any place, and any different bit of it.
TEST(Tokens, EveryBitCounts) {
  for (std::size_t i = 0; i < kToken.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string other = kToken;
      other[i] = static_cast<char>(other[i] ^ (1 << bit));
      EXPECT_FALSE(token_matches("Bearer " + other, kToken)) << i << " " << bit;
    }
  }
}

class TokenFiles : public testing::Test {
 protected:
  fs::path write(const std::string& text, fs::perms mode = fs::perms::owner_read | fs::perms::owner_write) {
    const fs::path path = folder_ / "tokens";
    std::ofstream(path) << text;
    fs::permissions(path, mode);
    return path;
  }
  TemporaryFolder folder_;
};

TEST_F(TokenFiles, HaveATokenOnEachLine) {
  EXPECT_EQ(read_tokens(write("# mine\n" + kToken + "\n\nABCDEFGHIJKLMNOP\r\n")),
            (std::vector<std::string>{kToken, "ABCDEFGHIJKLMNOP"}));
  EXPECT_EQ(read_tokens(write(kToken)), std::vector<std::string>{kToken}) << "the last line may lack its end";
}

TEST_F(TokenFiles, ThatOthersMayReadAreRefusedWithTheRemedy) {
  for (const fs::perms others : {fs::perms::group_read, fs::perms::others_read, fs::perms::others_write}) {
    const fs::path path = write(kToken, fs::perms::owner_read | fs::perms::owner_write | others);
    const std::string message = message_of<FileError>([&] { read_tokens(path); });
    EXPECT_NE(message.find("chmod 600 " + path.string()), std::string::npos) << message;
  }
  const fs::path path = write(kToken, static_cast<fs::perms>(0644));
  EXPECT_NE(message_of<FileError>([&] { read_tokens(path); }).find("0644"), std::string::npos);
}

TEST_F(TokenFiles, WithBadTokensAreRefusedByLine) {
  const auto message = [&](const std::string& text) {
    const fs::path path = write(text);
    return message_of<FileError>([&] { read_tokens(path); });
  };
  EXPECT_NE(message("# a\nshort\n").find("line 2: a token of 5 characters"), std::string::npos);
  EXPECT_NE(message("two words with spaces\n").find("line 1"), std::string::npos);
  EXPECT_NE(message("\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4").find("line 1"),
            std::string::npos);
  EXPECT_NE(message("# nothing\n\n").find("no token"), std::string::npos);
  EXPECT_NE(message("").find("no token"), std::string::npos);
  EXPECT_EQ(message("# a\nshort\n").find("short\n"), std::string::npos) << "what may be a secret is not shown";
}

TEST_F(TokenFiles, ThatAreNoneAreRefused) {
  EXPECT_THROW(read_tokens(folder_ / "missing"), FileError);
  EXPECT_THROW(read_tokens(folder_.path()), FileError);
}

Response plain(int status, const std::string& message) {
  return {.status = status, .body = message};
}

Request asking(Headers headers, const std::string& method = "GET", const std::string& path = "/v1/models") {
  Request request;
  request.method = method;
  request.path = path;
  request.headers = std::move(headers);
  return request;
}

// 0 if the request is let through.
int verdict(const AccessPolicy& policy, const Request& request) {
  const Admission admission = check_access(policy, request, plain);
  return admission.refusal ? admission.refusal->status : 0;
}

TEST(AccessPolicies, OnLoopbackOnlyNamesOfThisMachineAreHosts) {
  const AccessPolicy policy{};
  for (const std::string host : {"localhost", "localhost:8080", "LocalHost", "127.0.0.1", "127.0.0.1:80", "127.9.9.9",
                                 "[::1]", "[::1]:8080", "[::ffff:127.0.0.1]"}) {
    EXPECT_EQ(verdict(policy, asking({{"host", host}})), 0) << host;
  }
  for (const std::string host :
       {"evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "192.168.1.1", "",
        "[::2]", "0.0.0.0", "notlocalhost", "128.0.0.1", "[", "[::1"}) {
    EXPECT_EQ(verdict(policy, asking({{"host", host}})), 403) << host;
  }
  EXPECT_EQ(verdict(policy, asking({})), 403) << "HTTP/1.0 without a Host";
  EXPECT_EQ(verdict({.own_names = {"my.name"}}, asking({{"host", "My.Name:8080"}})), 0);
}

TEST(AccessPolicies, ElsewhereAnyHostIsFineUnlessNamesAreGiven) {
  EXPECT_EQ(verdict({.loopback = false}, asking({{"host", "any.example"}})), 0);
  EXPECT_EQ(verdict({.loopback = false, .own_names = {"own.example"}}, asking({{"host", "any.example"}})), 403);
  EXPECT_EQ(verdict({.loopback = false, .own_names = {"own.example"}}, asking({{"host", "own.example:1"}})), 0);
}

TEST(AccessPolicies, OriginsMustBeTheServersOwnOrNamed) {
  const Headers own{{"host", "localhost:8080"}, {"origin", "http://localhost:8080"}};
  const Headers other_port{{"host", "localhost:8080"}, {"origin", "http://localhost:9090"}};
  const Headers other{{"host", "localhost:8080"}, {"origin", "https://app.example"}};
  const Headers nobody{{"host", "localhost:8080"}, {"origin", "null"}};
  EXPECT_EQ(verdict({}, asking(own)), 0);
  EXPECT_EQ(verdict({}, asking(own, "POST")), 0);
  EXPECT_EQ(verdict({}, asking(other_port)), 403);
  EXPECT_EQ(verdict({}, asking(other)), 403);
  EXPECT_EQ(verdict({}, asking(nobody)), 403);
  EXPECT_EQ(verdict({}, asking({{"host", "localhost"}, {"origin", "https://localhost"}})), 403) << "another scheme";
  EXPECT_EQ(verdict({.origins = {"https://app.example"}}, asking(other)), 0);
  EXPECT_EQ(verdict({.origins = {"https://app.example"}}, asking(other_port)), 403);
  EXPECT_EQ(verdict({.origins = {"*"}}, asking(nobody)), 0);
}

TEST(AccessPolicies, NamedOriginsMayReadTheAnswers) {
  const Headers other{{"host", "localhost"}, {"origin", "https://app.example"}};
  const Admission named = check_access({.origins = {"https://app.example"}}, asking(other), plain);
  EXPECT_EQ(find_header(named.headers, "access-control-allow-origin"), "https://app.example");
  EXPECT_EQ(find_header(named.headers, "vary"), "Origin");
  const Admission all = check_access({.origins = {"*"}}, asking(other), plain);
  EXPECT_EQ(find_header(all.headers, "access-control-allow-origin"), "*");
  EXPECT_TRUE(check_access({}, asking(other), plain).headers.empty());
  EXPECT_TRUE(check_access({.origins = {"*"}}, asking({{"host", "localhost"}}), plain).headers.empty());
}

TEST(AccessPolicies, PreflightsAreAnsweredWithoutAToken) {
  const AccessPolicy policy{.tokens = {kToken}, .origins = {"https://app.example"}};
  Headers headers{{"host", "localhost"}, {"origin", "https://app.example"}, {"access-control-request-method", "POST"}};
  const Admission admission = check_access(policy, asking(headers, "OPTIONS"), plain);
  ASSERT_TRUE(admission.refusal);
  EXPECT_EQ(admission.refusal->status, 204);
  EXPECT_EQ(find_header(admission.headers, "access-control-allow-methods"), "GET, POST");
  EXPECT_EQ(find_header(admission.headers, "access-control-allow-headers"), "Authorization, Content-Type");
  headers[1].second = "https://evil.example";
  EXPECT_EQ(verdict(policy, asking(headers, "OPTIONS")), 403);
  EXPECT_EQ(verdict(policy, asking({{"host", "localhost"}}, "OPTIONS")), 401) << "no preflight";
}

TEST(AccessPolicies, TokensAreAskedForEverywhereButOnOpenPaths) {
  const AccessPolicy policy{
      .loopback = false, .tokens = {"another token that nobody has", kToken}, .open_paths = {"/health"}};
  EXPECT_EQ(verdict(policy, asking({{"host", "h"}})), 401);
  EXPECT_EQ(verdict(policy, asking({{"host", "h"}, {"authorization", "Bearer wrong"}})), 401);
  EXPECT_EQ(verdict(policy, asking({{"host", "h"}, {"authorization", "Bearer " + kToken}})), 0);
  EXPECT_EQ(verdict(policy, asking({{"host", "h"}}, "GET", "/health")), 0);
  EXPECT_EQ(verdict(policy, asking({{"host", "h"}}, "GET", "/health/")), 401);
  const Admission admission = check_access(policy, asking({{"host", "h"}}), plain);
  EXPECT_EQ(find_header(admission.refusal->headers, "www-authenticate"), "Bearer");
}

TEST(AccessPolicies, AWrongTokenFromANamedOriginCanBeReadThere) {
  const AccessPolicy policy{.tokens = {kToken}, .origins = {"https://app.example"}};
  const Admission admission =
      check_access(policy, asking({{"host", "localhost"}, {"origin", "https://app.example"}}), plain);
  EXPECT_EQ(admission.refusal->status, 401);
  EXPECT_EQ(find_header(admission.headers, "access-control-allow-origin"), "https://app.example");
}

TEST(LoopbackAddresses, AreThoseOfThisMachine) {
  EXPECT_TRUE(is_loopback("127.0.0.1"));
  EXPECT_TRUE(is_loopback("127.255.1.2"));
  EXPECT_TRUE(is_loopback("::1"));
  EXPECT_TRUE(is_loopback("::ffff:127.0.0.1"));
  EXPECT_FALSE(is_loopback("0.0.0.0"));
  EXPECT_FALSE(is_loopback("::"));
  EXPECT_FALSE(is_loopback("10.0.0.1"));
  EXPECT_FALSE(is_loopback("::ffff:10.0.0.1"));
  EXPECT_THROW(is_loopback("localhost"), InputError);
  EXPECT_THROW(is_loopback(""), InputError);
  EXPECT_THROW(is_loopback("127.0.0.1:80"), InputError);
}

}  // namespace
}  // namespace routing::http::access_test
