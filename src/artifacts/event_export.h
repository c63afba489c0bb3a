// A run as an event file that TensorBoard reads, also while the run goes on.
#pragma once

#include "artifacts/run_directory.h"
#include "config/run_spec.h"
#include "privacy/spending.h"

#include <cstdint>
#include <filesystem>

namespace sotto::artifacts {

class EventExport {
 public:
  // The file in `folder` that holds this run's events; the folder is made if it is not there. One with events of
  // another run is a UserError: TensorBoard would draw both as one.
  EventExport(const RunReader& run, const config::RunSpec& spec, const std::filesystem::path& folder, bool per_client);

  // Writes the rounds that are new since the last call. The first call goes on where an earlier export of the same run
  // left off, so that a TensorBoard that has the file open sees only what is added.
  void update();

  const std::filesystem::path& file() const { return file_; }
  int64_t rounds() const { return last_round_; }

 private:
  std::string new_records();
  void store(const std::string& records);

  const RunReader& run_;
  const bool per_client_;
  const double start_;  // of the run, in seconds since 1970
  const std::filesystem::path file_;
  privacy::Spending spending_;
  double elapsed_ = 0;
  int64_t last_round_ = 0;
  uintmax_t metrics_size_ = 0;
  bool started_ = false;
};

}  // namespace sotto::artifacts
