// sotto: answers --help and --version itself and becomes the engine for everything else.
//
// The engine is linked with libtorch, which takes half a second of processor time to load, whatever it is loaded for.
#include "cli/launcher.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>

namespace {

namespace fs = std::filesystem;
using sotto::cli::HelpText;

// What can be said at once: "--version", or the names of a command and "--help".
std::optional<std::string> quick_answer(int argc, char** argv) {
  if (argc < 2) return std::nullopt;
  const std::string_view last = argv[argc - 1];
  if (argc == 2 && last == "--version") return std::string(sotto::cli::kVersion) + "\n";
  if (last != "--help" && last != "-h") return std::nullopt;
  std::string command;
  for (int i = 1; i + 1 < argc; ++i) command += (command.empty() ? "" : " ") + std::string(argv[i]);
  const auto& texts = sotto::cli::kHelpTexts;
  const auto found = std::find_if(texts.begin(), texts.end(), [&](const HelpText& t) { return t.command == command; });
  return found == texts.end() ? std::nullopt : std::optional(std::string(found->text));
}

// Beside the launcher in a build, in libexec where it is installed.
fs::path engine() {
  std::error_code error;
  const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  const fs::path beside = here / "sotto-engine";
  return fs::exists(beside, error) ? beside : here.parent_path() / SOTTO_LIBEXEC / "sotto-engine";
}

// OpenBLAS knows processors by their numbers when it is loaded, and gives those that are newer than it kernels of 2004,
// which take several times as long. What a processor can do says more than its number; who knows better says so.
void choose_matrix_kernels() {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return;
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                    __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
  ::setenv("OPENBLAS_CORETYPE", wide ? "SkylakeX" : "Haswell", /*replace=*/0);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  if (const auto answer = quick_answer(argc, argv)) {
    const bool written = std::fwrite(answer->data(), 1, answer->size(), stdout) == answer->size();
    if (written && std::fflush(stdout) == 0) return 0;
    std::fprintf(stderr, "sotto: cannot write to standard output: %s\n", std::strerror(errno));
    return 2;
  }
  choose_matrix_kernels();
  const fs::path program = engine();
  ::execv(program.c_str(), argv);
  std::fprintf(stderr, "sotto: cannot start %s: %s; install sotto again\n", program.c_str(), std::strerror(errno));
  return 1;
}
