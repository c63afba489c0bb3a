// Checkpoints without a checksum, as earlier versions wrote them, that are damaged.
#include "../support/expect_user_error.h"
#include "../support/temp_folder.h"
#include "artifacts/checkpoint_file.h"
#include "base/files.h"
#include "io/safetensors.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace sotto::artifacts {
namespace {

TEST(DamagedCheckpoint, NumbersThatAreNoneAreRefused) {
  const test::TempFolder folder;
  const fs::path file = folder / "round_000003.safetensors";
  const auto read = [&](const std::string& round) {
    io::write_safetensors(
        file, {.tensors = {{"broadcast/w", at::ones({2})}}, .metadata = {{"config_hash", "a"}, {"round", round}}});
    return CheckpointFile(file).checkpoint("a");
  };
  EXPECT_EQ(read("3").round, 3);
  for (const char* round : {"", "x", "3x", "-3", "99999999999999999999", " 3"}) {
    EXPECT_USER_ERROR(read(round), "its 'round' is no number");
  }
}

}  // namespace
}  // namespace sotto::artifacts
