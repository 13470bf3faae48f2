#include "routing/config/text/other_names.h"

#include "routing/config/keys.h"
#include "routing/core/error.h"

#include <gtest/gtest.h>

#include <string>

namespace routing::other_names_test {
namespace {

TEST(OtherNames, AreFoundHoweverTheyAreWritten) {
  EXPECT_EQ(key_called("lr"), "train.learning_rate");
  EXPECT_EQ(key_called("train.lr"), "train.learning_rate");
  EXPECT_EQ(key_called("--seq-len"), "train.sequence_length");
  EXPECT_EQ(key_called("seq_len"), "train.sequence_length");
  EXPECT_EQ(key_called("gradient-accumulation-steps"), "train.accumulation");
  EXPECT_EQ(key_called("D_Model"), "model.width");
  EXPECT_EQ(key_called("lrx"), "");
  EXPECT_EQ(key_called(""), "");
  EXPECT_EQ(key_called("--"), "");
}

// One name of each row of the table.
TEST(OtherNames, LeadToKeysThatExist) {
  for (const char* const name : {"lr",      "bs",           "seqlen",        "max_iters",  "warmup",
                                 "wd",      "grad_clip",    "grad_accum",    "optim",      "scheduler",
                                 "amp",     "log_interval", "eval_interval", "save_steps", "manual_seed",
                                 "n_layer", "d_model",      "dim_head",      "d_ff",       "gradient_checkpointing",
                                 "n_head",  "num_clusters", "window_size",   "tokenizer",  "dataset"}) {
    const std::string key(key_called(name));
    ASSERT_NE(key, "") << name;
    EXPECT_NO_THROW(get_key(ExperimentConfig{}, key)) << name << " " << key;
  }
}

}  // namespace
}  // namespace routing::other_names_test
