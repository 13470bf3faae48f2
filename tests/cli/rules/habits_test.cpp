#include "shell/habits.h"

#include <gtest/gtest.h>

#include <string>

namespace routing::habits_test {
namespace {

HabitAnswer of_train(const std::string& option) {
  return answer_to_habit(option, [](const std::string& name) {
    return name == "--set" || name == "--steps" || name == "--out" || name == "--ranks" || name == "--learning-rate";
  });
}

HabitAnswer of_eval(const std::string& option) {
  return answer_to_habit(option, [](const std::string& name) { return name == "--batch-size"; });
}

TEST(Habits, LeadToTheShortOptionOrToTheKey) {
  EXPECT_EQ(of_train("--lr").message, "did you mean '--learning-rate'?");
  EXPECT_EQ(of_train("--seq-len").message, "the configuration key is train.sequence_length");
  EXPECT_EQ(of_train("--seq-len").hint, "--set train.sequence_length=VALUE");
  EXPECT_EQ(of_train("--output-dir").message, "did you mean '--out'?");
  EXPECT_EQ(of_train("--nproc-per-node").message, "did you mean '--ranks'?");
  EXPECT_EQ(of_eval("--bs").message, "did you mean '--batch-size'?");
  EXPECT_EQ(of_eval("--seq-len").message, "") << "a command without keys";
  EXPECT_EQ(of_eval("--output-dir").message, "");
  EXPECT_EQ(of_train("--nonsense").message, "");
  EXPECT_EQ(of_train("--output_dir").message, "did you mean '--out'?");
}

TEST(Habits, GetAPlainAnswerWhereThereIsNothing) {
  for (const char* const option : {"--device", "--gpu", "--cuda"}) {
    EXPECT_EQ(of_eval(option).message, "everything runs on the processor; there is no GPU code") << option;
  }
  EXPECT_EQ(of_train("--epochs").message, "training is counted in steps");
  EXPECT_EQ(of_eval("--epochs").message, "");
  EXPECT_EQ(of_eval("--num-workers").message, "did you mean '--threads'?");
}

}  // namespace
}  // namespace routing::habits_test
