#include "bench/server_process.h"

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>
#include <utility>
#include <vector>

namespace sotto::bench {
namespace {

using nlohmann::json;

constexpr auto kLook = std::chrono::milliseconds(20);
constexpr size_t kLastWords = 2000;  // bytes of the log

// The port that the server says it listens on; 0 if it has not said so yet.
int port_in(const std::string& log) {
  for (const std::string& line : split(log, '\n')) {
    const json event = json::parse(line, nullptr, false);
    if (event.is_object() && event.value("event", "") == "listening") return event.at("port").get<int>();
  }
  return 0;
}

// A line of /proc/PID/status, such as "VmRSS:      1234 kB", in bytes.
int64_t memory_line(pid_t process, const std::string& name) {
  for (const std::string& line : split(read_file(fmt::format("/proc/{}/status", process)), '\n')) {
    if (line.starts_with(name + ":")) return std::stoll(line.substr(name.size() + 1)) * 1024;
  }
  return 0;
}

pid_t start(std::vector<std::string> arguments, const fs::path& log) {
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const int output = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const pid_t parent = ::getpid();
  const pid_t process = ::fork();
  if (process != 0) {
    ::close(output);
    return process;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::execv("/proc/self/exe", pointers.data());
  ::_exit(1);
}

}  // namespace

double processor_seconds(pid_t process) {
  const std::string line = read_file(fmt::format("/proc/{}/stat", process));
  // The program's name may hold anything but ends with the last parenthesis; user and system time are 12th and 13th.
  const std::vector<std::string> fields = split(line.substr(line.rfind(')') + 2), ' ');
  return static_cast<double>(std::stoll(fields.at(11)) + std::stoll(fields.at(12))) /
         static_cast<double>(::sysconf(_SC_CLK_TCK));
}

ServerProcess::ServerProcess(const fs::path& folder, const std::string& config, const fs::path& certificates)
    : folder_(folder) {
  make_folder(folder_);
  write_file_atomically(this->config(), config);
  const fs::path log = folder_ / "server.log";
  process_ = start({"sotto", "serve", this->config().string(), "--folder", this->folder().string(), "--certs",
                    certificates.string(), "--listen", "localhost:0", "--linger", "600", "--log", "json"},
                   log);
  if (process_ < 0) fail_user("cannot start the server's process");
  while ((port_ = port_in(read_file(log))) == 0) {
    if (!running()) fail();
    std::this_thread::sleep_for(kLook);
  }
}

ServerProcess::~ServerProcess() {
  if (!running()) return;
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

std::string ServerProcess::address() const {
  return fmt::format("localhost:{}", port_);
}

int64_t ServerProcess::resident_bytes() const {
  return memory_line(process_, "VmRSS");
}

int64_t ServerProcess::peak_resident_bytes() const {
  return memory_line(process_, "VmHWM");
}

bool ServerProcess::running() {
  if (process_ < 0) return false;
  if (::waitpid(process_, &status_, WNOHANG) != process_) return true;
  process_ = -1;
  return false;
}

void ServerProcess::wait() {
  while (running()) std::this_thread::sleep_for(kLook);
  if (!WIFEXITED(status_) || WEXITSTATUS(status_) != 0) fail();
}

std::string ServerProcess::last_words() const {
  const std::string log = read_file(folder_ / "server.log");
  return log.substr(log.size() > kLastWords ? log.size() - kLastWords : 0);
}

void ServerProcess::fail() const {
  fail_user("the server ended before its rounds did: {}", last_words());
}

}  // namespace sotto::bench
