#include "data/install/process.h"

#include "base/error.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

extern char** environ;

namespace sotto::data {
namespace {

constexpr int kNotFound = 127;

class SpawnActions {
 public:
  SpawnActions() { posix_spawn_file_actions_init(&actions); }
  ~SpawnActions() { posix_spawn_file_actions_destroy(&actions); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;

  posix_spawn_file_actions_t actions{};
};

std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 4096> buffer{};
  while (true) {
    const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
    if (count > 0) text.append(buffer.data(), static_cast<size_t>(count));
    if (count == 0 || (count < 0 && errno != EINTR)) return text;
  }
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

CommandResult run_command(const std::vector<std::string>& arguments, const std::filesystem::path& folder) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail_user("cannot run {}: {}", arguments[0], std::strerror(errno));
  SpawnActions spawn;
  posix_spawn_file_actions_addchdir_np(&spawn.actions, folder.c_str());
  posix_spawn_file_actions_addopen(&spawn.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&spawn.actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&spawn.actions, ends[1], STDERR_FILENO);
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, argv[0], &spawn.actions, nullptr, argv.data(), environ);
  ::close(ends[1]);
  CommandResult result;
  if (error == 0) {
    result.output = read_all(ends[0]);
    result.exit_code = wait_for(child);
  } else {
    result = {kNotFound, std::strerror(error)};
  }
  ::close(ends[0]);
  return result;
}

}  // namespace sotto::data
