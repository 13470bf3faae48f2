// Texts that tokenisers tend to change.
#pragma once

#include <string>
#include <vector>

namespace routing {

inline std::vector<std::string> hostile_texts() {
  const std::string mark = "\xE2\x96\x81";
  return {
      "",
      " ",
      "\n",
      "  \n  ",
      " leading",
      "trailing ",
      "a  b   c    d",
      "\ttabs\t\tbetween\t",
      "lines\r\nof Windows\r\n",
      "\r\r\n\n\r",
      std::string("NUL\0in\0\0it\0", 11),
      mark,
      mark + mark + " " + mark,
      " " + mark + "a" + mark + " b " + mark + "\n" + mark,
      "half of it \xE2\x96\x80 and beyond \xE2\x96\x82",
      "</s> <s> <unk> <pad> <0x41> <0x0A>",
      "\xE2\x96\x85 \xE2\x81\x87 \xEF\xBF\xBD",                              // what SentencePiece uses itself
      "\xF0\x9F\x98\x80 \xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x92\xBB",       // emoji, one of several characters
      "e\xCC\x81 \xC3\xA9 \xEF\xAC\x81 \xEF\xBC\xA1 \xC2\xBD \xE2\x84\xAB",  // what normalisers change
      "\xC2\xA0no-break \xE3\x80\x80wide\xE2\x80\x83space\xE2\x80\xA8\xE2\x80\xA9\xC2\x85",
      "\xEF\xBB\xBF"
      "byte order mark",
      "\xE2\x80\x8Bzero\xE2\x80\x8Dwidth\xE2\x80\xAEturned",
      "\xD7\xA9\xD7\x9C\xD7\x95\xD7\x9D \xD9\x85\xD8\xB1\xD8\xAD\xD8\xA8\xD8\xA7 \xE6\xBC\xA2\xE5\xAD\x97",
      "\xF4\x8F\xBF\xBF\xEF\xBF\xBF\xEE\x80\x80",  // the last character of all, no character, one for private use
      "\x01\x02\x1B[31m\x7F",
      "UPPER lower 0123456789 3.14159 1,000,000 $5 a_b-c/d\\e \"quoted\" 'single' `tick`",
      std::string(10000, 'x'),
      std::string(10000, ' '),
      std::string(3000, '\n'),
      "no line end",
  };
}

}  // namespace routing
