// A run as it is watched in a terminal: a bar with time left, and a row per evaluated round.
#pragma once

#include "base/progress.h"
#include "federation/loop.h"

#include <memory>
#include <string>

namespace sotto::cli {

class ConsoleWatcher : public federation::RunSink {
 public:
  // `rounds_done` were finished before this process started.
  ConsoleWatcher(const federation::Setup& setup, int64_t rounds_done);

  void client_done(int64_t round, int64_t client) override;
  void upload(int64_t, int64_t, const privacy::Upload&) override {}
  void round(const federation::RoundRecord& record) override;
  void checkpoint(const federation::Checkpoint&) override {}

 private:
  Progress progress_;
  bool header_printed_ = false;
};

// The figures of a summary.json as a few aligned lines.
std::string describe_summary(const nlohmann::json& summary);

}  // namespace sotto::cli
