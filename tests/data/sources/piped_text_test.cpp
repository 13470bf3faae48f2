#include "routing/data/sources/piped_text.h"

#include "data/source_support.h"
#include "data/temporary_folder.h"
#include "routing/core/error.h"
#include "routing/core/hash.h"
#include "routing/data/sources/byte_corpus.h"
#include "support/message_of.h"

#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace routing::piped_text_test {
namespace {

namespace fs = std::filesystem;

class PipedText : public TemporaryFolderTest {
 protected:
  // What keep_pipe() makes of a named pipe that these bytes are sent through.
  fs::path kept(const std::string& text) const {
    const fs::path pipe = folder() / "pipe";
    fs::remove(pipe);
    EXPECT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    // Joined on every way out.
    const std::jthread writer([&] { std::ofstream(pipe, std::ios::binary) << text; });
    return keep_pipe(pipe, folder() / "kept" / "below");
  }
};

TEST_F(PipedText, IsKeptWholeUnderTheHashOfItsBytes) {
  std::string text;
  for (int i = 0; i < 400'000; ++i) text += std::to_string(i) + "\n";
  const fs::path file = kept(text);
  EXPECT_EQ(contents_of(file), text);
  EXPECT_EQ(file, folder() / "kept/below" / ("pipe-" + hexadecimal(xxhash64(std::as_bytes(std::span(text))))));
  EXPECT_EQ(kept(text), file);
  EXPECT_NE(kept("other"), file);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder() / "kept/below"), {}), 2) << "nothing else is left there";
}

TEST_F(PipedText, CompressedTextIsNamedSoThatItIsUnpacked) {
  const std::string member = std::string("\x1f\x8b\x08\0\0\0\0\0\0\xff", 10) + std::string("\x01\x03\0\xfc\xff", 5) +
                             "abc" + std::string("\xc2\x41\x24\x35\x03\0\0\0", 8);
  const fs::path file = kept(member);
  EXPECT_EQ(file.extension(), ".gz");
  EXPECT_EQ(as_text(ByteCorpus(file).bytes()), "abc");
}

TEST_F(PipedText, APipeThatEndsWithoutAByteIsRefusedAndLeavesNothing) {
  EXPECT_EQ(message_of<FileError>([&] { kept(""); }),
            (folder() / "pipe").string() + ": ended without a byte; look whether the command before the pipe failed");
  EXPECT_TRUE(fs::is_empty(folder() / "kept/below"));
}

TEST_F(PipedText, ATerminalIsRefused) {
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (master < 0 || ::grantpt(master) != 0 || ::unlockpt(master) != 0) GTEST_SKIP() << "no terminals here";
  const std::string terminal = ::ptsname(master);
  EXPECT_EQ(message_of<FileError>([&] { keep_pipe(terminal, folder()); }),
            terminal + ": is a terminal; send text into it, as in  cat *.txt | routing …, or name a file");
  ::close(master);
}

TEST_F(PipedText, AFolderThatCannotBeMadeIsSaid) {
  const fs::path file = write("file", "x");
  ASSERT_EQ(::mkfifo((folder() / "p").c_str(), 0600), 0);
  const int open_end = ::open((folder() / "p").c_str(), O_RDWR | O_CLOEXEC);
  const std::string message = message_of<FileError>([&] { keep_pipe(folder() / "p", file / "below"); });
  ::close(open_end);
  EXPECT_EQ(message.find((file / "below").string() + ": cannot be made: "), 0U) << message;
}

TEST(PipeNames, AreThoseOfPeople) {
  EXPECT_EQ(pipe_name("-"), "standard input");
  EXPECT_EQ(pipe_name("/dev/stdin"), "standard input");
  EXPECT_EQ(pipe_name("/dev/fd/63"), "/dev/fd/63");
}

}  // namespace
}  // namespace routing::piped_text_test
