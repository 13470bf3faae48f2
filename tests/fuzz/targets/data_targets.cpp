// Data: shards, what is known about a data set, texts, words.
#include "data/images/image_files.h"
#include "fuzz/scratch_files.h"
#include "fuzz/targets.h"
#include "routing/core/hash.h"
#include "routing/core/utf8.h"
#include "routing/data/prepared.h"
#include "routing/data/shard.h"
#include "routing/data/sources/byte_corpus.h"
#include "routing/data/sources/document_files.h"
#include "routing/data/sources/wikitext.h"
#include "routing/data/tokenizers/word_vocabulary.h"

#include <cstring>

namespace routing::fuzz {
namespace {

constexpr std::size_t kHeaderBytes = 128;

// A file as it is, or a header and ids with the checksums that they should have.
void run_shard(Bytes bytes) {
  InputCutter input(bytes);
  const bool as_it_is = input.byte() % 8 == 0;
  std::string file = input.rest();
  if (!as_it_is && file.size() >= kHeaderBytes) {
    const std::uint64_t ids = xxhash64(raw(std::string_view(file).substr(kHeaderBytes)));
    std::memcpy(file.data() + 80, &ids, sizeof ids);
    const std::uint64_t header = xxhash64(raw(std::string_view(file).substr(0, 120)));
    std::memcpy(file.data() + 120, &header, sizeof header);
  }
  const auto path = scratch_file("train.shard", file);
  takes([&] {
    const Shard shard(path);
    const ShardFacts& facts = shard.facts();
    hold(shard.tokens().size() == facts.tokens && facts.record_length >= 0 && facts.vocabulary_size >= 1,
         "impossible facts");
    // Written again it is the same but for bytes that mean nothing.
    const bool known = [&] {
      for (std::int64_t place = 0; place < facts.tokens; ++place) {
        if (shard.tokens()[place] < 0 || shard.tokens()[place] >= facts.vocabulary_size) return false;
      }
      return true;
    }();
    if (!known) return;
    const auto copy_path = scratch_folder() / "copy.shard";
    ShardWriter writer(copy_path, facts.vocabulary_size, facts.tokenizer_hash);
    std::vector<std::int32_t> all(static_cast<std::size_t>(facts.tokens));
    shard.tokens().copy(0, std::span(all));
    writer.write(std::span<const std::int32_t>(all));
    writer.finish(facts);
    const Shard copy(copy_path);
    hold(copy.facts() == facts && copy.checksum() == shard.checksum(), "written and read it is another shard");
  });
}

void run_data_json(Bytes bytes) {
  scratch_file(std::string("facts/") + kFactsFile, text_of(bytes));
  takes([&] {
    const DataFacts facts = read_data_facts(scratch_folder() / "facts");
    hold(facts.vocabulary_size >= 1 && facts.image.height >= 0 && facts.image.width >= 0 && facts.record_length() >= 0,
         "impossible facts");
  });
}

// By the definition, one character at a time; the length of the text if all of it is UTF-8.
std::size_t valid_prefix(std::string_view text) {
  const auto at = [&](std::size_t place) { return static_cast<unsigned char>(text[place]); };
  std::size_t place = 0;
  while (place < text.size()) {
    const unsigned first = at(place);
    const std::size_t size = first < 0x80                    ? 1
                             : first >= 0xC0 && first < 0xE0 ? 2
                             : first >= 0xE0 && first < 0xF0 ? 3
                             : first >= 0xF0 && first < 0xF8 ? 4
                                                             : 0;
    if (size == 0 || size > text.size() - place) return place;
    std::uint32_t code = size == 1 ? first : first & (0x7FU >> size);
    for (std::size_t next = 1; next < size; ++next) {
      if ((at(place + next) & 0xC0U) != 0x80U) return place;
      code = code << 6U | (at(place + next) & 0x3FU);
    }
    constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < kLeast[size] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return place;
    place += size;
  }
  return place;
}

void check_utf8(std::string_view text) {
  const std::size_t valid = valid_prefix(text);
  const std::optional<std::size_t> invalid = first_invalid_utf8(text);
  hold(invalid.value_or(text.size()) == valid, "UTF-8 ends elsewhere by its definition");
  // However a valid text is cut, what hangs over is the rest of its last character.
  for (std::size_t cut = 0; cut <= std::min<std::size_t>(valid, 40); ++cut) {
    const std::string_view part = text.substr(0, cut);
    hold(incomplete_utf8_tail(part) == cut - valid_prefix(part), "another part of a character hangs over");
  }
}

void check_pieces(std::string_view text, TextCheck check) {
  std::string all;
  const bool taken =
      takes([&] { read_in_pieces(text, "x.txt", check, [&](std::string_view piece, bool) { all += piece; }); });
  hold(taken == (check == TextCheck::none || !first_invalid_utf8(text)), "UTF-8 was not told from what is none");
  hold(!taken || all == text, "the pieces are another text");
}

void check_wikitext(const std::string& content) {
  scratch_file("wikitext/wiki.train.tokens", content);
  takes([&] {
    std::string all;
    const auto source = open_wikitext(scratch_folder() / "wikitext");
    source->read("train", [&](std::string_view piece, bool) { all += piece; });
    hold(all == content, "the source gives another text");
  });
}

void run_text(Bytes bytes) {
  InputCutter input(bytes);
  const bool packed = input.byte() % 4 == 0;
  const std::string content = input.rest();
  if (!packed) {
    check_utf8(content);
    check_pieces(content, TextCheck::utf8);
    check_pieces(content, TextCheck::none);
    if (one_in(4, bytes)) check_wikitext(content);
  }
  const auto path = scratch_file(packed ? "x.txt.gz" : "x.txt", content);
  takes([&] {
    const ByteCorpus corpus(path);
    hold(corpus.size() > 0, "an empty corpus");
    hold(packed || text_of(corpus.bytes()) == content, "the corpus gives another text");
  });
}

// A vocabulary, an empty line, a text.
void run_words(Bytes bytes) {
  const std::string_view all = text_of(bytes);
  const std::size_t cut = all.find("\n\n");
  const std::string_view list = all.substr(0, cut == std::string_view::npos ? all.size() : cut + 1);
  const std::string_view text = cut == std::string_view::npos ? "" : all.substr(cut + 2);
  const auto path = scratch_file("vocabulary.txt", list);
  takes([&] {
    const auto words = WordVocabulary::load(path);
    std::vector<std::int32_t> ids, again;
    words->encode(text, ids);
    for (const std::int32_t id : ids) hold(id >= 0 && id < words->vocabulary_size(), "an id beyond the vocabulary");
    words->encode(words->decode(ids), again);
    hold(ids == again, "decoded and encoded again they are other words");
    if (!one_in(8, bytes)) return;
    words->save(scratch_folder() / "again.txt");
    hold(WordVocabulary::load(scratch_folder() / "again.txt")->words() == words->words(), "another vocabulary");
  });
  WordCounter counter;
  counter.add(text);
  const auto made = counter.vocabulary(WordsSeenOnce::unknown);
  std::vector<std::int32_t> ids;
  made->encode(text, ids);
  hold(static_cast<std::int64_t>(ids.size()) == counter.tokens(), "counted and encoded tokens differ");
}

std::vector<std::string> shard_seeds() {
  const auto path = scratch_folder() / "seed.shard";
  std::vector<std::string> seeds;
  for (const std::int64_t vocabulary : {256, 70'000}) {
    ShardWriter writer(path, vocabulary, "0123456789abcdef");
    writer.write(std::vector<std::int32_t>{1, 2, 3, 255});
    writer.finish({.record_length = 2, .documents = 2, .words = 3, .bytes = 9});
    seeds.push_back(bytes_of_file(path) + '\0');
    seeds.push_back(bytes_of_file(path) + '\1');
  }
  return seeds;
}

std::vector<std::string> data_json_seeds() {
  return {R"({"routing_data": 1, "source": "x", "format": "wikitext", "tokens": "words", "vocabulary_size": 10,
 "tokenizer_hash": "0123456789abcdef", "image_height": 0, "image_width": 0, "missing": "", "cut": "valid is the last 2 %"})",
          R"({"routing_data": 1, "format": "images", "tokens": "bytes", "vocabulary_size": 256,
 "tokenizer_hash": "0000000000000000", "image_height": 32, "image_width": 32, "missing": "1 of 5", "cut": ""})",
          R"({"routing_data": 2})", R"([1, {"a": null}, 1e99, -1, "\ud800"])"};
}

// Two files of one member each, as gzip writes them.
const std::string kPackedText =
    literal("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\x48\xcd\xc9\xc9\xe7\x02\x00\x20\x30\x3a\x36\x06\x00\x00\x00");

std::vector<std::string> text_seeds() {
  const auto plain = [](const std::string& text) { return text + '\1'; };
  return {plain("one\ntwo  three\n\n"),
          plain("h\xc3\xa9 \xe2\x96\x81 \xf0\x9f\x98\x80\r\n"),
          plain("\xed\xa0\x80 \xc0\xaf \xf4\x90\x80\x80"),
          plain(literal("a\0b\xff")),
          kPackedText + '\0',
          kPackedText + kPackedText + std::string(3, '\0')};
}

std::vector<std::string> word_seeds() {
  return {"<eos>\n<unk>\nthe\nof\n\nthe end of\n the  <eos> <unk>\n", "<eos>\nthe\n<unk>\n\n\n\n",
          "<eos>\nthe\nthe\n<unk>\n", "\n\nonly a text a text\n"};
}

}  // namespace

FuzzTarget shard_target() {
  return {"shard", run_shard, shard_seeds, 512};
}
FuzzTarget data_json_target() {
  return {"data_json", run_data_json, data_json_seeds, 1024};
}
FuzzTarget text_target() {
  return {"text", run_text, text_seeds, 1024};
}
FuzzTarget words_target() {
  return {"words", run_words, word_seeds, 512};
}

}  // namespace routing::fuzz
