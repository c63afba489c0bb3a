// `sotto serve` as a process of its own, so that what it takes of the machine is its own too.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>

namespace sotto::bench {

// Seconds that a process has computed so far.
double processor_seconds(pid_t process);

class ServerProcess {
 public:
  // Serves `config` (TOML text) from `folder`, with the certificates in `certificates`; returns when it listens. The
  // process ends with this object, and with the one that started it.
  ServerProcess(const std::filesystem::path& folder, const std::string& config,
                const std::filesystem::path& certificates);
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  // HOST:PORT
  std::string address() const;
  // Where the server keeps everything.
  std::filesystem::path folder() const { return folder_ / "server"; }
  std::filesystem::path config() const { return folder_ / "config.toml"; }

  double processor_seconds() const { return bench::processor_seconds(process_); }
  // In memory now, and at most so far.
  int64_t resident_bytes() const;
  int64_t peak_resident_bytes() const;

  // What it said last.
  std::string last_words() const;

  // Waits until it has ended because all rounds are done; a UserError with its last words if something else ended it.
  void wait();

 private:
  bool running();
  [[noreturn]] void fail() const;

  std::filesystem::path folder_;
  pid_t process_ = -1;
  int status_ = 0;
  int port_ = 0;
};

}  // namespace sotto::bench
