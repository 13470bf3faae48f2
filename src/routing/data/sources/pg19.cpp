#include "routing/data/sources/pg19.h"

#include "routing/core/error.h"

#include <array>
#include <string>
#include <utility>

namespace routing {
namespace {

struct Pg19Part {
  std::string_view name;
  std::string_view folder;
  std::size_t books = 0;
  std::int64_t words = 0;
};

constexpr std::array kParts{
    Pg19Part{.name = "train", .folder = "train", .books = 28602, .words = 1973136207},
    Pg19Part{.name = "valid", .folder = "validation", .books = 50, .words = 3007061},
    Pg19Part{.name = "test", .folder = "test", .books = 100, .words = 6966499},
};

constexpr const char* kExpected = "train/, validation/ and test/ with one ID.txt per book";

std::vector<std::filesystem::path> books_in(const std::filesystem::path& folder) {
  std::error_code ignored;
  require<FileError>(std::filesystem::is_directory(folder, ignored), folder.string(),
                     ": there is no such folder; PG-19 has ", kExpected,
                     "; add it, or read any other text with data.format=text");
  std::vector<std::filesystem::path> books = text_files_in(folder);
  require<FileError>(!books.empty(), folder.string(), ": has no .txt file; PG-19 has ", kExpected,
                     "; put at least one book into it");
  return books;
}

void require_text(const std::vector<std::filesystem::path>& books, const std::filesystem::path& folder) {
  std::error_code ignored;
  for (const std::filesystem::path& book : books) {
    if (std::filesystem::file_size(book, ignored) > 0) return;
  }
  throw FileError(folder.string() + ": its books have 0 bytes together; fetch them again");
}

}  // namespace

std::unique_ptr<TextSource> open_pg19(const std::filesystem::path& folder, TextCheck check) {
  require_folder(folder, kExpected);
  SourceFacts facts{.format = "pg19", .parts = {}, .missing = ""};
  for (const Pg19Part& part : kParts) {
    const std::filesystem::path place = folder / part.folder;
    std::vector<std::filesystem::path> books = books_in(place);
    require_text(books, place);
    if (books.size() != part.books) {
      facts.missing += (facts.missing.empty() ? "" : ", ") + std::to_string(books.size()) + " of " +
                       std::to_string(part.books) + " " + std::string(part.folder) + " books";
    }
    facts.parts.push_back({.name = std::string(part.name), .files = std::move(books)});
  }
  return source_of_documents(std::move(facts), check);
}

std::optional<std::int64_t> official_pg19_words(std::string_view part) {
  for (const Pg19Part& official : kParts) {
    if (official.name == part) return official.words;
  }
  return std::nullopt;
}

}  // namespace routing
