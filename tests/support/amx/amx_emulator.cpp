#include "support/amx/amx_emulator.h"

#include "routing/core/error.h"
#include "routing/kernels/dispatch/cpu_features.h"
#include "support/amx/amx_tiles.h"

#include <array>
#include <atomic>
#include <csignal>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

namespace routing::support {
namespace {

// The handler may touch this first: initial-exec storage exists from the start of the thread, without allocation.
constinit thread_local AmxTiles tiles_of_thread __attribute__((tls_model("initial-exec")));

constinit std::array<std::atomic<std::int64_t>, kNumAmxOperations> counters{};
constinit std::atomic<bool> emulator_lives{false};
struct sigaction previous_action;

// The registers in the order of their numbers.
constexpr std::array kRegisters{REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

std::uint64_t segment_start(AmxAddress::Segment segment) {
  if (segment == AmxAddress::Segment::none) return 0;
  // From the kernel's <asm/prctl.h>.
  constexpr long kGetFs = 0x1003;
  constexpr long kGetGs = 0x1004;
  std::uint64_t start = 0;
  syscall(SYS_arch_prctl, segment == AmxAddress::Segment::fs ? kGetFs : kGetGs, &start);
  return start;
}

// Unsigned, because addresses wrap around.
class Operand {
 public:
  Operand(const AmxInstruction& instruction, const greg_t* registers)
      : address_(instruction.address), registers_(registers) {
    start_ = segment_start(address_.segment) + static_cast<std::uint64_t>(address_.displacement);
    if (address_.base == AmxAddress::kNextInstruction) {
      start_ += static_cast<std::uint64_t>(registers[REG_RIP]) + static_cast<std::uint64_t>(instruction.length);
    } else {
      start_ += value_of(address_.base);
    }
  }

  std::int64_t row_distance() const { return static_cast<std::int64_t>(scaled_index()); }
  void* first_row() const { return reinterpret_cast<void*>(start_); }
  void* place() const { return reinterpret_cast<void*>(start_ + scaled_index()); }

 private:
  std::uint64_t value_of(int number) const {
    if (number == AmxAddress::kNone) return 0;
    return static_cast<std::uint64_t>(registers_[kRegisters[static_cast<std::size_t>(number)]]);
  }
  std::uint64_t scaled_index() const { return value_of(address_.index) * static_cast<std::uint64_t>(address_.scale); }

  AmxAddress address_;
  const greg_t* registers_;
  std::uint64_t start_ = 0;
};

void carry_out(const AmxInstruction& instruction, const greg_t* registers, AmxTiles& tiles) {
  const Operand memory(instruction, registers);
  switch (instruction.operation) {
    case AmxOperation::load_config:
      return tiles.load_config(memory.place());
    case AmxOperation::store_config:
      return tiles.store_config(memory.place());
    case AmxOperation::release:
      return tiles.release();
    case AmxOperation::load:
      return tiles.load(instruction.tile, memory.first_row(), memory.row_distance());
    case AmxOperation::store:
      return tiles.store(instruction.tile, memory.first_row(), memory.row_distance());
    case AmxOperation::zero:
      return tiles.zero(instruction.tile);
    case AmxOperation::multiply_bf16:
      return tiles.multiply_bf16(instruction.tile, instruction.left, instruction.right);
  }
}

void pass_on(int signal, siginfo_t* info, void* context) {
  if ((previous_action.sa_flags & SA_SIGINFO) != 0) return previous_action.sa_sigaction(signal, info, context);
  // Linux ends a process that ignores an illegal instruction, too.
  const bool from_instruction = info->si_code > 0;
  if (previous_action.sa_handler == SIG_DFL || (previous_action.sa_handler == SIG_IGN && from_instruction)) {
    struct sigaction end {};
    end.sa_handler = SIG_DFL;
    sigaction(SIGILL, &end, nullptr);
    // The instruction comes again by itself; a signal that somebody sent does not.
    if (!from_instruction) raise(SIGILL);
    return;
  }
  if (previous_action.sa_handler != SIG_IGN) previous_action.sa_handler(signal);
}

// The instruction that this thread would fetch next, if it is one of AMX.
std::optional<AmxInstruction> next_instruction(const greg_t* registers) {
  return decode_amx(reinterpret_cast<const std::uint8_t*>(registers[REG_RIP]));
}

void on_illegal_instruction(int signal, siginfo_t* info, void* context) {
  greg_t* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  // A signal that somebody sent has nothing to do with the instruction that the thread is at.
  std::optional<AmxInstruction> instruction;
  if (info->si_code > 0) instruction = next_instruction(registers);
  if (!instruction) return pass_on(signal, info, context);
  // Signals are slow and tile instructions often stand in a row: all of them while we are here.
  for (; instruction; instruction = next_instruction(registers)) {
    carry_out(*instruction, registers, tiles_of_thread);
    counters[static_cast<std::size_t>(instruction->operation)].fetch_add(1, std::memory_order_relaxed);
    registers[REG_RIP] += instruction->length;
  }
}

}  // namespace

bool can_run_amx() {
  return request_amx_permission() != AmxPermission::refused;
}

bool tiles_are_configured() {
  TileConfig config;
  __asm__ volatile("sttilecfg %0" : "=m"(config));
  return config.palette != 0;
}

AmxEmulator::AmxEmulator() {
  require<InputError>(can_run_amx(), "AmxEmulator: this processor has tiles, but Linux refuses them; skip the test");
  if (request_amx_permission() == AmxPermission::granted) return;
  require<InputError>(!emulator_lives.exchange(true), "AmxEmulator: there is one already; destroy it first");
  for (auto& counter : counters) counter = 0;
  struct sigaction action {};
  action.sa_sigaction = on_illegal_instruction;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGILL, &action, &previous_action);
  installed_ = true;
}

AmxEmulator::~AmxEmulator() {
  if (!installed_) return;
  sigaction(SIGILL, &previous_action, nullptr);
  emulator_lives = false;
}

std::int64_t AmxEmulator::count(AmxOperation operation) const {
  return installed_ ? counters[static_cast<std::size_t>(operation)].load() : 0;
}

}  // namespace routing::support
