// Who is lost, by the beats of all ranks and a clock made by hand.
#include "routing/distributed/watch/rank_judge.h"

#include "routing/distributed/watch/rank_status.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace routing::rank_judge_test {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using Beats = std::vector<std::optional<RankBeat>>;

constexpr JudgeLimits kLimits{.silent = milliseconds(500), .waiting = milliseconds(750), .starting = milliseconds(900)};
const Clock::time_point kBegin = Clock::time_point() + std::chrono::hours(5);

RankBeat beat(RankPhase phase, int age, std::int64_t number = 1, std::int64_t step = 37) {
  return {.number = number, .step = step, .phase = phase, .phase_age = milliseconds(age)};
}

// What a judge says who sees these beats when it has looked for so long without any.
std::optional<RankFailure> judged(const Beats& beats, milliseconds before = std::chrono::hours(1)) {
  return RankJudge(static_cast<int>(beats.size()), kLimits, kBegin - before).look(beats, kBegin);
}

TEST(RankBeat, ComesBackFromItsText) {
  for (const RankPhase phase :
       {RankPhase::preparing, RankPhase::computing, RankPhase::waiting, RankPhase::saving, RankPhase::ended}) {
    const RankBeat before = beat(phase, 1234, std::int64_t{1} << 40U, 99);
    const RankBeat after = beat_from_text(to_text(before)).value();
    EXPECT_EQ(after.number, before.number);
    EXPECT_EQ(after.step, before.step);
    EXPECT_EQ(after.phase, before.phase);
    EXPECT_EQ(after.phase_age, before.phase_age);
  }
}

TEST(RankBeat, IsNotReadFromOtherTexts) {
  for (const char* text : {"", "1", "1 2 3", "a b c d", "1 2 5 4", "1 2 -1 4", "1 2 3 4 5", "1 2 3 4x", " 1 2 3 4"}) {
    EXPECT_FALSE(beat_from_text(text).has_value()) << "'" << text << "'";
  }
}

TEST(RankFailure, ComesBackFromItsRecord) {
  for (const char* reason : {"out of memory", "", "two\nlines", " leading and trailing ", "7 8 numbers first"}) {
    const RankFailure before{.rank = -1, .step = 12, .reason = reason};
    const RankFailure after = failure_from_record(to_record(before)).value();
    EXPECT_EQ(after.rank, -1);
    EXPECT_EQ(after.step, 12);
    EXPECT_EQ(after.reason, reason);
  }
  for (const char* record : {"", "3", "three 4 reason", "1 37", "01 37 x", "1  37 x", "2147483648 9 x"}) {
    EXPECT_FALSE(failure_from_record(record)) << record;
  }
}

TEST(RankFailure, TextNamesRankStepAndReason) {
  EXPECT_EQ((RankFailure{.rank = 2, .step = 37, .reason = "gone"}).text(), "rank 2 failed after step 37: gone");
  EXPECT_EQ((RankFailure{.rank = -1, .step = 3, .reason = "gone"}).text(), "the run failed after step 3: gone");
}

// Silence or waiting shows with the next look, a beat later; the verdict travels with the next but one.
TEST(JudgeLimits, LeaveTimeForTheVerdictWithinTheTimeout) {
  for (const int timeout : {1000, 5000, 60000, 3600000}) {
    const JudgeLimits limits = judge_limits(milliseconds(timeout));
    const milliseconds period = beat_period(milliseconds(timeout));
    EXPECT_GT(limits.silent, 2 * period) << "a beat may come late";
    EXPECT_GE(limits.waiting, limits.silent);
    EXPECT_LE(limits.silent + 3 * period, milliseconds(timeout));
    EXPECT_LE(limits.waiting + 3 * period, milliseconds(timeout));
    EXPECT_LE(limits.starting + 3 * period, milliseconds(timeout));
  }
  EXPECT_EQ(beat_period(milliseconds(10000)), milliseconds(500));
  EXPECT_EQ(beat_period(milliseconds(100)), milliseconds(20)) << "not oftener";
  EXPECT_EQ(beat_period(std::chrono::hours(1)), milliseconds(1000)) << "not more rarely";
}

TEST(RankJudge, ARankIsLostOnceItWasSilentForTheLimit) {
  RankJudge judge(2, kLimits, kBegin);
  EXPECT_FALSE(judge.look({beat(RankPhase::computing, 0, 1), beat(RankPhase::computing, 0, 1)}, kBegin));
  // Rank 0 goes on; the last of rank 1 came at 400.
  EXPECT_FALSE(
      judge.look({beat(RankPhase::computing, 0, 2), beat(RankPhase::computing, 0, 2)}, kBegin + milliseconds(400)));
  EXPECT_FALSE(
      judge.look({beat(RankPhase::computing, 0, 3), beat(RankPhase::computing, 0, 2)}, kBegin + milliseconds(899)));
  const auto failure =
      judge.look({beat(RankPhase::computing, 0, 4, 38), beat(RankPhase::computing, 0, 2)}, kBegin + milliseconds(900));
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->rank, 1);
  EXPECT_EQ(failure->step, 38) << "the last that any has finished";
  EXPECT_EQ(failure->reason, "nothing was heard of it for 0.5 s; it is dead, stopped or without network");
}

TEST(RankJudge, ARankThatNeverCameHasLongerToStart) {
  RankJudge judge(2, kLimits, kBegin);
  EXPECT_FALSE(judge.look({beat(RankPhase::preparing, 0, 1), std::nullopt}, kBegin + milliseconds(899)));
  const auto failure = judge.look({beat(RankPhase::preparing, 0, 2), std::nullopt}, kBegin + milliseconds(900));
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->rank, 1);
}

TEST(RankJudge, SilenceCountsInEveryPhaseButTheEnd) {
  for (const RankPhase phase : {RankPhase::preparing, RankPhase::computing, RankPhase::waiting, RankPhase::saving}) {
    RankJudge judge(1, kLimits, kBegin);
    EXPECT_FALSE(judge.look({beat(phase, 0)}, kBegin));
    EXPECT_TRUE(judge.look({beat(phase, 0)}, kBegin + milliseconds(500))) << static_cast<int>(phase);
  }
  RankJudge judge(2, kLimits, kBegin);
  EXPECT_FALSE(judge.look({beat(RankPhase::ended, 0), beat(RankPhase::ended, 0)}, kBegin));
  EXPECT_FALSE(judge.look({beat(RankPhase::ended, 0), beat(RankPhase::ended, 0)}, kBegin + std::chrono::hours(1)));
}

TEST(RankJudge, TheRankThatDoesNotComeToACollectiveIsLate) {
  EXPECT_FALSE(judged({beat(RankPhase::waiting, 749), beat(RankPhase::computing, 5000), beat(RankPhase::waiting, 3)}));
  const auto failure =
      judged({beat(RankPhase::waiting, 760), beat(RankPhase::computing, 5000), beat(RankPhase::waiting, 1750)});
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->rank, 1);
  EXPECT_EQ(failure->step, 37);
  EXPECT_EQ(failure->reason, "it hangs; rank 2 has waited 1.8 s for it in step 38");
}

TEST(RankJudge, NobodyIsLateWhileOneOfThemPreparesSavesOrHasSaidNothing) {
  for (const RankPhase phase : {RankPhase::preparing, RankPhase::saving}) {
    EXPECT_FALSE(judged({beat(RankPhase::waiting, 90000), beat(RankPhase::computing, 0), beat(phase, 90000)}));
    EXPECT_FALSE(judged({beat(phase, 90000), beat(RankPhase::waiting, 90000), beat(RankPhase::computing, 0)}));
  }
  EXPECT_FALSE(judged({beat(RankPhase::waiting, 90000), std::nullopt}, milliseconds(800)));
  EXPECT_TRUE(judged({beat(RankPhase::waiting, 90000), beat(RankPhase::computing, 0)}));
}

// Rank 1 has waited all the time in which rank 0 saved; when that has computed for a while, it is not late yet.
TEST(RankJudge, WaitingForOneThatSavesDoesNotCount) {
  RankJudge judge(2, kLimits, kBegin - std::chrono::hours(1));
  EXPECT_FALSE(judge.look({beat(RankPhase::saving, 9000, 1), beat(RankPhase::waiting, 8000, 1)}, kBegin));
  EXPECT_FALSE(
      judge.look({beat(RankPhase::computing, 400, 2), beat(RankPhase::waiting, 8400, 2)}, kBegin + milliseconds(400)));
  EXPECT_FALSE(
      judge.look({beat(RankPhase::computing, 749, 3), beat(RankPhase::waiting, 8749, 3)}, kBegin + milliseconds(749)));
  const auto failure =
      judge.look({beat(RankPhase::computing, 750, 4), beat(RankPhase::waiting, 8750, 4)}, kBegin + milliseconds(750));
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->rank, 0);
}

TEST(RankJudge, OfSeveralThatDoNotComeTheOneThatComputesLongestIsNamed) {
  const auto failure =
      judged({beat(RankPhase::computing, 10), beat(RankPhase::waiting, 900), beat(RankPhase::computing, 5000)});
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->rank, 2);
}

TEST(RankJudge, WhoHasEndedWhileAnotherWaitsForItIsNamed) {
  const auto failure = judged({beat(RankPhase::waiting, 800), beat(RankPhase::ended, 700)});
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->rank, 1);
  EXPECT_EQ(failure->reason, "it has ended while rank 0 waits for it");
  EXPECT_FALSE(judged({beat(RankPhase::computing, 90000), beat(RankPhase::ended, 90000)}));
}

TEST(RankJudge, AllThatWaitForOneAnotherAreADeadlockOnceTheLastHasWaited) {
  EXPECT_FALSE(judged({beat(RankPhase::waiting, 9000), beat(RankPhase::waiting, 749)}));
  const auto failure = judged({beat(RankPhase::waiting, 9000), beat(RankPhase::waiting, 750)});
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->rank, 1) << "the last that came";
  EXPECT_EQ(failure->reason, "all ranks wait for one another since 0.8 s");
}

TEST(RankStatus, BeatsCountUpAndSayPhaseAndStep) {
  RankStatus status;
  EXPECT_EQ(status.phase(), RankPhase::preparing);
  const RankBeat first = status.beat();
  EXPECT_EQ(first.phase, RankPhase::preparing);
  status.enter(RankPhase::computing);
  status.finish_step(5);
  EXPECT_EQ(status.step(), 5);
  const RankBeat second = status.beat();
  EXPECT_EQ(second.number, first.number + 1);
  EXPECT_EQ(second.step, 5);
  EXPECT_EQ(second.phase, RankPhase::computing);
  {
    const PhaseGuard guard(status, RankPhase::saving);
    EXPECT_EQ(status.phase(), RankPhase::saving);
  }
  EXPECT_EQ(status.phase(), RankPhase::computing);
}

}  // namespace
}  // namespace routing::rank_judge_test
