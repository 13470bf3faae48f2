// Pickles that would run something, or make a careless reader read, allocate or recurse without end. All are refused,
// with a message that says what they asked for.
#include "interchange/pickle/pickle_bytes.h"
#include "routing/core/error.h"
#include "routing/interchange/pickle/restricted_pickle.h"
#include "support/message_of.h"

#include <gtest/gtest.h>

namespace routing::hostile_pickles_test {
namespace {

std::vector<PickledTensor> read(const std::string& pickle) {
  return read_pickled_tensors(std::as_bytes(std::span(pickle)), "file");
}

std::string refusal(const std::string& pickle) {
  return message_of<FileError>([&] { read(pickle); });
}

#define EXPECT_REFUSED(body, words) \
  EXPECT_NE(refusal(pickle_of(body)).find(words), std::string::npos) << refusal(pickle_of(body))

std::string call_of(const std::string& module, const std::string& name, const std::string& argument) {
  return function_of(module, name) + tuple_of({string_of(argument)}) + "R";
}

TEST(HostilePickles, NoFunctionOfTheWorldIsNamed) {
  const std::vector<std::pair<std::string, std::string>> functions{{"os", "system"},
                                                                   {"posix", "system"},
                                                                   {"nt", "system"},
                                                                   {"builtins", "eval"},
                                                                   {"builtins", "exec"},
                                                                   {"__builtin__", "eval"},
                                                                   {"builtins", "getattr"},
                                                                   {"subprocess", "Popen"},
                                                                   {"subprocess", "check_output"},
                                                                   {"runpy", "_run_code"},
                                                                   {"importlib", "import_module"},
                                                                   {"sys", "exit"},
                                                                   {"socket", "create_connection"},
                                                                   {"webbrowser", "open"},
                                                                   {"shutil", "rmtree"},
                                                                   {"pickle", "loads"},
                                                                   {"torch", "load"},
                                                                   {"torch.hub", "load"},
                                                                   {"torch.storage", "_load_from_bytes"},
                                                                   {"torch._utils", "_rebuild_tensor"},
                                                                   {"torch._utils", "_rebuild_tensor_v3"},
                                                                   {"torch._utils", "_import_dotted_name"},
                                                                   {"torch._utils", "system"},
                                                                   {"torch", "Storage"},
                                                                   {"torch", "FloatStorage.from_file"},
                                                                   {"collections", "defaultdict"},
                                                                   {"collections", "OrderedDict.fromkeys"},
                                                                   {"", ""}};
  for (const auto& [module, name] : functions) {
    EXPECT_REFUSED(call_of(module, name, "echo pwned"), "asks for '" + module + "." + name + "'");
    EXPECT_REFUSED(dictionary_of({{"w", call_of(module, name, "x")}}), "asks for '" + module + "." + name + "'");
  }
}

TEST(HostilePickles, KnownNamesAreNotCalledForAnythingElse) {
  EXPECT_REFUSED(call_of("torch", "FloatStorage", "/etc/passwd"), "calls the function torch.FloatStorage");
  EXPECT_REFUSED(call_of("collections", "OrderedDict", "x"), "makes an OrderedDict of 1 values");
  EXPECT_REFUSED(string_of("not a function") + ")R", "calls the text 'not a function'");
  EXPECT_REFUSED(function_of("collections", "OrderedDict") + string_of("x") + "R", "with the text 'x'");
  EXPECT_REFUSED(function_of("torch._utils", "_rebuild_parameter") + tuple_of({string_of("x")}) + "R",
                 "a parameter of no tensor");
  EXPECT_REFUSED(dictionary_of({{"w", function_of("torch._utils", "_rebuild_tensor_v2")}}),
                 "entry 'w' is the function");
}

TEST(HostilePickles, ObjectsAndTheirStateAreRefused) {
  EXPECT_REFUSED(function_of("collections", "OrderedDict") + ")\x81", "makes an object of a class (NEWOBJ)");
  EXPECT_REFUSED("(" + string_of("x") + "ios\nsystem\n", "makes an object of a class (INST, OBJ)");
  EXPECT_REFUSED(string_of("os") + string_of("system") + "\x93", "STACK_GLOBAL");
  EXPECT_REFUSED("\x82\x01", "registered number (EXT)");
  EXPECT_REFUSED("Pstorage\n", "by a text (PERSID)");
  const std::string reducer = "}" + string_of("__reduce__") + string_of("x") + "s";
  EXPECT_REFUSED(empty_dictionary() + reducer + "b", "sets attributes other than _metadata");
  EXPECT_REFUSED(tensor_of({}) + "}" + string_of("_metadata") + "Nsb",
                 "sets attributes of a dictionary, but finds a tensor");
  EXPECT_REFUSED(empty_dictionary() + string_of("_metadata") + "b", "sets attributes other than _metadata");
}

TEST(HostilePickles, EveryOtherOpcodeIsRefusedByItsNumber) {
  const std::string known = "().GJKMNQRX]abcehjqrstu}";
  int refused = 0;
  for (int opcode = 0; opcode < 256; ++opcode) {
    const bool above = opcode >= 0x85 && opcode <= 0x8a;
    if (known.find(static_cast<char>(opcode)) != std::string::npos || above || opcode == 0x80) continue;
    EXPECT_REFUSED(std::string(1, static_cast<char>(opcode)), "has opcode " + std::to_string(opcode) + ",");
    ++refused;
  }
  EXPECT_EQ(refused, 256 - static_cast<int>(known.size()) - 7);
}

TEST(HostilePickles, OtherProtocolsAndOtherFilesAreRefused) {
  EXPECT_NE(refusal("\x80\x04\x95").find("protocol 4"), std::string::npos);
  EXPECT_NE(refusal("\x80\x03}.").find("protocol 3"), std::string::npos);
  EXPECT_NE(refusal("(dp0\n.").find("does not begin as a pickle"), std::string::npos);
  EXPECT_NE(refusal("").find("does not begin as a pickle"), std::string::npos);
  EXPECT_NE(refusal(pickle_of("}") + "}.").find("goes on for 2 bytes"), std::string::npos);
  EXPECT_REFUSED("}}", "ends with 2 values");
  EXPECT_REFUSED("}(", "ends with 1 values");
  EXPECT_REFUSED("", "ends with 0 values");
  EXPECT_REFUSED(string_of("hello"), "holds the text 'hello', but a dictionary of tensors");
}

TEST(HostilePickles, TheStackIsNeverReadBelowItsFloor) {
  for (const char* body : {"R", "b", "s", "u", "t", "e", "a", "Q", "\x85", "\x86", "\x87", "q\x01"}) {
    EXPECT_THROW(read(pickle_of(body)), FileError) << body;
  }
  // A mark protects what lies below it.
  EXPECT_REFUSED("}(Q", "where there is none");
  EXPECT_REFUSED("}" + string_of("k") + "(s", "where there is none");
  EXPECT_REFUSED("}(" + string_of("k") + "u", "without a value");
  EXPECT_REFUSED("h\x07", "recalls value 7");
  EXPECT_REFUSED("K\x01K\x02K\x03s", "sets entries of a dictionary, but finds the number 1");
}

TEST(HostilePickles, BombsOfMemoAndNestingStaySmall) {
  // Each list holds the one before ten times: 10^30 texts if it were written out.
  std::string laughs = "]q" + std::string(1, '\0');
  for (char level = 1; level <= 30; ++level) {
    laughs += "](";
    for (int copy = 0; copy < 10; ++copy) laughs += std::string("h") + static_cast<char>(level - 1);
    laughs += std::string("eq") + level;
  }
  laughs += "(" + std::string("t");
  EXPECT_THROW(read(pickle_of(laughs)), FileError);
  std::string itself = "]q" + std::string(1, '\1') + "h\1a";  // a list inside of itself
  EXPECT_REFUSED(itself, "holds a list of 1");
  EXPECT_REFUSED(std::string(200'000, '('), "nested deeper than 100000");
  EXPECT_REFUSED(std::string(200'000, ']'), "nested deeper than 100000");
  std::string deep = "]";
  for (int level = 0; level < 300'000; ++level) deep += "\x85";  // a tuple in a tuple in a tuple …
  EXPECT_REFUSED(deep, "holds a tuple of 1");
  std::string many;
  for (int count = 0; count < 100'000; ++count) many += "(NNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNt";
  EXPECT_NE(refusal(pickle_of("(" + many)).find("more than"), std::string::npos);
}

TEST(HostilePickles, TextsAndNumbersAreBounded) {
  EXPECT_REFUSED("X\xff\xff\xff\xff", "has a text of 4294967295 bytes");
  EXPECT_REFUSED("X" + little_endian(10, 4) + "abc", "10 bytes were expected");
  EXPECT_REFUSED("X" + little_endian(2, 4) + "\xff\xfe", "not UTF-8");
  EXPECT_REFUSED("\x8a\xff", "whole number of 255 bytes");
  EXPECT_REFUSED("c" + std::string(300, 'a') + "\nb\n", "more than 256 letters");
  EXPECT_REFUSED("cos", "1 bytes were expected");
}

TEST(HostilePickles, CallsWithManyValuesAreRefusedBeforeTheyAreCopied) {
  std::string many = "(";
  for (int index = 0; index < 50'000; ++index) many += "N";
  const std::string rebuild = function_of("torch._utils", "_rebuild_tensor_v2");
  // Five bytes a call, 200 kB a copy.
  std::string calls = many + "tq\x01" + rebuild + "q\x02";
  for (int index = 0; index < 20'000; ++index) calls += "h\x02h\x01R";
  EXPECT_REFUSED(calls, "calls the function torch._utils._rebuild_tensor_v2 with 50000 values");
  EXPECT_REFUSED(many + "tQ", "refers to something that is not a storage");
}

TEST(HostilePickles, WhatManyTensorsShareIsKeptShort) {
  const std::string long_name(65'000, '0');
  EXPECT_REFUSED(dictionary_of({{"w", tensor_of({.storage = storage_of("FloatStorage", long_name, 4)})}}),
                 "the name of its storage has 65000 bytes");
  std::string many = empty_dictionary() + "(" + string_of("first") + tensor_of({}) + "q\x01";
  for (int index = 0; index < 45'000; ++index) many += string_of("a" + std::to_string(index)) + "h\x01";
  many += "u(";
  for (int index = 0; index < 45'000; ++index) many += string_of("b" + std::to_string(index)) + "h\x01";
  EXPECT_EQ(read(pickle_of(many + "u")).size(), 90'001U);
  many += "u(";
  for (int index = 0; index < 45'000; ++index) many += string_of("c" + std::to_string(index)) + "h\x01";
  EXPECT_REFUSED(many + "u", "has more than 100000 tensors");
}

TEST(HostilePickles, EveryPrefixOfAGoodPickleIsRefused) {
  const std::string good = pickle_of(dictionary_of({{"w", tensor_of({})}, {"v", tensor_of({})}}));
  for (std::size_t size = 0; size < good.size(); ++size) {
    const std::string part = good.substr(0, size);
    EXPECT_THROW(read(part), FileError) << size;
  }
  // No changed byte makes it crash or read outside; what is still a state_dict of tensors in bounds may pass.
  for (std::size_t place = 0; place < good.size(); ++place) {
    for (const int flip : {1, 2, 4, 8, 16, 32, 64, 128, 255}) {
      std::string changed = good;
      changed[place] = static_cast<char>(changed[place] ^ flip);
      try {
        for (const PickledTensor& tensor : read(changed)) {
          EXPECT_LE(*count_of(tensor.dimensions), tensor.storage_count);
        }
      } catch (const FileError&) {
      }
    }
  }
}

TEST(HostilePickles, ViewsOutsideOfTheirStorageAreRefused) {
  const std::int64_t huge = std::int64_t{1} << 62;
  const auto view = [](const ViewBytes& bytes) { return dictionary_of({{"w", tensor_of(bytes)}}); };
  EXPECT_REFUSED(view({.offset = number_of(1)}), "reach beyond the 4 numbers");
  EXPECT_REFUSED(view({.offset = number_of(-1)}), "its offset is the number -1");
  EXPECT_REFUSED(view({.offset = number_of(huge)}), "reach beyond");
  EXPECT_REFUSED(view({.size = numbers_of({2, 3})}), "[2, 3], more numbers than the 4");
  EXPECT_REFUSED(view({.size = numbers_of({2, -2})}), "its size is the number -2");
  EXPECT_REFUSED(view({.size = numbers_of({huge, huge})}), "more numbers than the 4");
  EXPECT_REFUSED(view({.stride = numbers_of({3, 1})}), "reach beyond");
  EXPECT_REFUSED(view({.stride = numbers_of({2, -1})}), "its stride is the number -1");
  EXPECT_REFUSED(view({.stride = numbers_of({huge, huge})}), "reach beyond");
  EXPECT_REFUSED(view({.stride = numbers_of({1})}), "has 2 sizes and 1 strides");
  EXPECT_REFUSED(view({.size = numbers_of({1'000'000}), .stride = numbers_of({0})}), "more numbers than the 4");
  EXPECT_REFUSED(view({.storage = storage_of("FloatStorage", "0", -4)}), "the count of its storage is the number -4");
  EXPECT_REFUSED(view({.size = string_of("x")}), "its size is the text 'x'");
  EXPECT_REFUSED(view({.storage = string_of("x")}), "is a view of the text 'x'");
  EXPECT_REFUSED(view({.storage = tuple_of({string_of("module"), function_of("torch", "FloatStorage"), string_of("0"),
                                            string_of("cpu"), number_of(4)}) +
                                  "Q"}),
                 "not a storage");
  EXPECT_REFUSED(view({.storage = tuple_of({string_of("storage")}) + "Q"}), "not a storage");
  EXPECT_REFUSED(view({.storage = storage_of("FloatStorage", "0", 4).replace(0, 0, ""), .offset = "N"}),
                 "its offset is None");
  std::vector<std::int64_t> many(65, 1);
  EXPECT_REFUSED(view({.size = numbers_of(many), .stride = numbers_of(many)}), "a tuple of 65");
}

TEST(HostilePickles, TwoTensorsOfOneNameAndStrangeKeysAreRefused) {
  EXPECT_REFUSED(dictionary_of({{"w", tensor_of({})}, {"w", tensor_of({})}}), "two tensors named 'w'");
  EXPECT_REFUSED("}K\x01" + tensor_of({}) + "s", "has the number 1 as a key");
  const std::string with_hook = function_of("torch._utils", "_rebuild_tensor_v2") +
                                tuple_of({storage_of("FloatStorage", "0", 4), number_of(0), numbers_of({4}),
                                          numbers_of({1}), "\x89", dictionary_of({{"hook", "N"}})}) +
                                "R";
  EXPECT_REFUSED(dictionary_of({{"w", with_hook}}), "has hooks");
  EXPECT_REFUSED(dictionary_of({{"w", function_of("torch._utils", "_rebuild_tensor_v2") + ")R"}}), "made of 0 values");
}

}  // namespace
}  // namespace routing::hostile_pickles_test
