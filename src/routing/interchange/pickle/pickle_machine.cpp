#include "routing/interchange/pickle/pickle_machine.h"

#include "routing/core/utf8.h"

#include <algorithm>
#include <array>
#include <utility>

namespace routing {
namespace {

// A state_dict has some values per tensor. These bound what a pickle can make us keep, whatever it says.
constexpr std::size_t kMostValues = 4'000'000;
constexpr std::size_t kDeepestStack = 100'000;
constexpr std::uint64_t kLongestText = 65'536;
// What a tensor is made of. A call takes a few bytes and may name a tuple that is there already, however long: without
// this bound a short pickle would have us copy it without end.
constexpr std::size_t kMostArguments = 7;

enum Opcode : std::uint8_t {
  kMark = '(',
  kEmptyTuple = ')',
  kStop = '.',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinPersId = 'Q',
  kReduce = 'R',
  kBinUnicode = 'X',
  kEmptyList = ']',
  kAppend = 'a',
  kBuild = 'b',
  kGlobal = 'c',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kSetItems = 'u',
  kEmptyDict = '}',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
};

const std::string kOrderedDict = "collections.OrderedDict";
const std::string kRebuildTensor = "torch._utils._rebuild_tensor_v2";
const std::string kRebuildParameter = "torch._utils._rebuild_parameter";

bool is_known(const std::string& function) {
  static const std::array<std::string, 13> known{
      kOrderedDict,        kRebuildTensor,      kRebuildParameter,       "torch.FloatStorage", "torch.DoubleStorage",
      "torch.HalfStorage", "torch.LongStorage", "torch.BFloat16Storage", "torch.IntStorage",   "torch.ShortStorage",
      "torch.CharStorage", "torch.ByteStorage", "torch.BoolStorage"};
  return std::find(known.begin(), known.end(), function) != known.end();
}

// What other opcodes would do, for messages.
std::string opcode_text(std::uint8_t opcode) {
  switch (opcode) {
    case 0x81:
    case 0x92:
      return "makes an object of a class (NEWOBJ)";
    case 'i':
    case 'o':
      return "makes an object of a class (INST, OBJ)";
    case 0x93:
      return "names a function by two texts (STACK_GLOBAL, of protocol 4)";
    case 0x82:
    case 0x83:
    case 0x84:
      return "names a function by a registered number (EXT)";
    case 0x95:
    case 0x94:
    case 0x8c:
    case 0x8e:
    case 0x8d:
      return "belongs to protocol 4";
    case 'P':
      return "refers to something outside by a text (PERSID)";
    default:
      return "is not one that torch.save needs for tensors";
  }
}

}  // namespace

void PickleMachine::refuse(const std::string& what) const {
  throw FileError(cursor_.where() + ": " + what + " (byte " + std::to_string(cursor_.place()) +
                  " of the pickle); only tensors by name are read, nothing is run");
}

void PickleMachine::push(PickleValue value) {
  if (values_.size() >= kMostValues) refuse("has more than " + std::to_string(kMostValues) + " values");
  values_.push_back(std::move(value));
  push_id(static_cast<PickleId>(values_.size() - 1));
}

void PickleMachine::push_id(PickleId id) {
  if (stack_.size() >= kDeepestStack) refuse("is nested deeper than " + std::to_string(kDeepestStack));
  stack_.push_back(id);
}

void PickleMachine::push_integer(std::int64_t number) {
  push({.kind = PickleKind::integer, .number = number});
}

PickleId PickleMachine::pop() {
  const std::size_t floor = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() <= floor) refuse("takes a value where there is none");
  const PickleId id = stack_.back();
  stack_.pop_back();
  return id;
}

std::vector<PickleId> PickleMachine::pop_to_mark() {
  if (marks_.empty()) refuse("ends a list of values that has not begun");
  const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<PickleId> items(begin, stack_.end());
  stack_.erase(begin, stack_.end());
  marks_.pop_back();
  return items;
}

void PickleMachine::push_tuple(std::size_t count) {
  std::vector<PickleId> items(count);
  for (std::size_t index = count; index > 0; --index) items[index - 1] = pop();
  push({.kind = PickleKind::tuple, .items = std::move(items)});
}

PickleValue& PickleMachine::top(PickleKind kind, const char* for_what) {
  const std::size_t floor = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() <= floor) refuse(std::string(for_what) + " where there is none");
  PickleValue& value = values_[stack_.back()];
  if (value.kind != kind) refuse(std::string(for_what) + ", but finds " + described(value));
  return value;
}

void PickleMachine::remember(std::uint64_t place) {
  if (memo_.size() >= kMostValues) refuse("remembers more than " + std::to_string(kMostValues) + " values");
  const PickleId id = pop();
  stack_.push_back(id);
  memo_[place] = id;
}

void PickleMachine::recall(std::uint64_t place) {
  const auto found = memo_.find(place);
  if (found == memo_.end()) refuse("recalls value " + std::to_string(place) + ", which it has not remembered");
  push_id(found->second);
}

void PickleMachine::push_text(std::uint64_t bytes) {
  if (bytes > kLongestText) refuse("has a text of " + std::to_string(bytes) + " bytes");
  const std::string_view text = cursor_.text(bytes);
  if (first_invalid_utf8(text)) refuse("has a text that is not UTF-8");
  push({.kind = PickleKind::text, .text = std::string(text)});
}

// Two's complement, the lowest byte first.
void PickleMachine::push_long() {
  const std::uint64_t bytes = cursor_.byte();
  if (bytes > 8) refuse("has a whole number of " + std::to_string(bytes) + " bytes");
  std::uint64_t number = cursor_.fixed(bytes);
  const bool negative = bytes > 0 && (number >> (8 * bytes - 1) & 1U) != 0;
  if (negative && bytes < 8) number |= ~std::uint64_t{0} << (8 * bytes);
  push_integer(static_cast<std::int64_t>(number));
}

// Two lines: module and name.
void PickleMachine::push_function() {
  std::array<std::string, 2> lines;
  for (std::string& line : lines) {
    for (char letter = '\0'; (letter = static_cast<char>(cursor_.byte())) != '\n';) {
      if (line.size() >= 256) refuse("names a function of more than 256 letters");
      line += letter;
    }
    if (first_invalid_utf8(line)) refuse("names a function that is not UTF-8");
  }
  const std::string name = lines[0] + "." + lines[1];
  if (!is_known(name)) refuse("asks for '" + name + "', which is not needed for tensors");
  push({.kind = PickleKind::function, .text = name});
}

void PickleMachine::extend_list(const std::vector<PickleId>& items) {
  PickleValue& list = top(PickleKind::list, "appends to a list");
  list.items.insert(list.items.end(), items.begin(), items.end());
}

void PickleMachine::extend_dictionary(const std::vector<PickleId>& keys_and_values) {
  PickleValue& dictionary = top(PickleKind::dictionary, "sets entries of a dictionary");
  if (keys_and_values.size() % 2 != 0) refuse("sets an entry without a value");
  dictionary.items.insert(dictionary.items.end(), keys_and_values.begin(), keys_and_values.end());
}

// ('storage', class, number, device, count)
void PickleMachine::refer_to_storage() {
  const PickleValue& tuple = top(PickleKind::tuple, "refers to a storage by a tuple");
  constexpr std::array kKinds{PickleKind::text, PickleKind::function, PickleKind::text, PickleKind::text,
                              PickleKind::integer};
  if (tuple.items.size() != kKinds.size()) refuse("refers to something that is not a storage");
  const std::vector<PickleId> items = tuple.items;
  pop();
  bool fits = true;
  for (std::size_t index = 0; fits && index < kKinds.size(); ++index) {
    fits = values_[items[index]].kind == kKinds[index];
  }
  if (!fits || values_[items[0]].text != "storage") refuse("refers to something that is not a storage");
  push({.kind = PickleKind::storage, .items = items});
}

void PickleMachine::call() {
  const PickleId arguments = pop();
  const PickleId function = pop();
  const std::string name = described(values_[function]);
  if (values_[function].kind != PickleKind::function) refuse("calls " + name);
  if (values_[arguments].kind != PickleKind::tuple) refuse("calls " + name + " with " + described(values_[arguments]));
  const std::size_t count = values_[arguments].items.size();
  if (count > kMostArguments) refuse("calls " + name + " with " + std::to_string(count) + " values");
  const std::vector<PickleId> items = values_[arguments].items;
  const std::string& called = values_[function].text;
  if (called == kOrderedDict) {
    if (!items.empty()) refuse("makes an OrderedDict of " + std::to_string(items.size()) + " values at once");
    push({.kind = PickleKind::dictionary});
  } else if (called == kRebuildTensor) {
    push({.kind = PickleKind::tensor, .items = items});
  } else if (called == kRebuildParameter) {
    if (items.empty() || values_[items[0]].kind != PickleKind::tensor) refuse("makes a parameter of no tensor");
    push_id(items[0]);
  } else {
    refuse("calls " + name);
  }
}

// torch.save() keeps the versions of modules beside the entries of a state_dict; nothing of them is needed.
void PickleMachine::set_state() {
  const PickleId state = pop();
  top(PickleKind::dictionary, "sets attributes of a dictionary");
  const PickleValue& attributes = values_[state];
  const bool only_metadata = attributes.kind == PickleKind::dictionary && attributes.items.size() == 2 &&
                             values_[attributes.items[0]].text == "_metadata";
  if (!only_metadata) refuse("sets attributes other than _metadata: " + described(attributes));
}

void PickleMachine::step(std::uint8_t opcode) {
  switch (opcode) {
    case kProto: {
      const int protocol = cursor_.byte();
      if (protocol != 2) {
        refuse("is written in protocol " + std::to_string(protocol) +
               ", but torch.save writes 2 unless told otherwise (pickle_protocol)");
      }
      return;
    }
    case kMark:
      if (marks_.size() >= kDeepestStack) refuse("is nested deeper than " + std::to_string(kDeepestStack));
      return marks_.push_back(stack_.size());
    case kNone:
      return push({});
    case kNewTrue:
    case kNewFalse:
      return push({.kind = PickleKind::boolean, .number = opcode == kNewTrue ? 1 : 0});
    case kBinInt:
      return push_integer(static_cast<std::int32_t>(cursor_.fixed(4)));
    case kBinInt1:
      return push_integer(cursor_.byte());
    case kBinInt2:
      return push_integer(static_cast<std::int64_t>(cursor_.fixed(2)));
    case kLong1:
      return push_long();
    case kBinFloat:
      cursor_.take(8);  // learning rates and the like; no tensor needs one
      return push({.kind = PickleKind::real});
    case kBinUnicode:
      return push_text(cursor_.fixed(4));
    case kEmptyTuple:
      return push_tuple(0);
    case kTuple1:
    case kTuple2:
    case kTuple3:
      return push_tuple(static_cast<std::size_t>(opcode - kTuple1) + 1);
    case kTuple:
      return push({.kind = PickleKind::tuple, .items = pop_to_mark()});
    case kEmptyList:
      return push({.kind = PickleKind::list});
    case kEmptyDict:
      return push({.kind = PickleKind::dictionary});
    case kAppend:
      return extend_list({pop()});
    case kAppends:
      return extend_list(pop_to_mark());
    case kSetItem: {
      const PickleId value = pop();
      return extend_dictionary({pop(), value});
    }
    case kSetItems:
      return extend_dictionary(pop_to_mark());
    case kBinPut:
      return remember(cursor_.byte());
    case kLongBinPut:
      return remember(cursor_.fixed(4));
    case kBinGet:
      return recall(cursor_.byte());
    case kLongBinGet:
      return recall(cursor_.fixed(4));
    case kGlobal:
      return push_function();
    case kBinPersId:
      return refer_to_storage();
    case kReduce:
      return call();
    case kBuild:
      return set_state();
    default:
      refuse("has opcode " + std::to_string(opcode) + ", which " + opcode_text(opcode));
  }
}

PickleId PickleMachine::run() {
  const bool has_protocol = cursor_.left() >= 2 && cursor_.byte() == kProto;
  if (!has_protocol) refuse("does not begin as a pickle of protocol 2 does");
  step(kProto);
  for (;;) {
    const std::uint8_t opcode = cursor_.byte();
    if (opcode == kStop) break;
    step(opcode);
  }
  if (stack_.size() != 1 || !marks_.empty()) refuse("ends with " + std::to_string(stack_.size()) + " values, not one");
  if (cursor_.left() > 0) refuse("goes on for " + std::to_string(cursor_.left()) + " bytes after its end");
  return stack_.front();
}

}  // namespace routing
