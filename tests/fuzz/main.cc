// Runs one fuzzer, with libFuzzer where it was linked in, and otherwise with random changes to its examples.
//
//   fuzz_NAME [-max_total_time=SECONDS] [-runs=N] [-seed=N] [FILE or FOLDER …]
//
// These options are libFuzzer's; without it others are passed over, and FILEs are run once each. What breaks the decoder
// is left in the current folder as broken-NAME-….
#include "base/log.h"
#include "base/random.h"
#include "fuzz.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace sotto::fuzz {

void touch(const NamedTensors& tensors) {
  volatile unsigned char sum = 0;
  for (const auto& [name, value] : tensors) {
    const at::Tensor packed = value.contiguous();
    const auto* bytes = static_cast<const unsigned char*>(packed.data_ptr());
    for (size_t i = 0; i < packed.nbytes(); ++i) sum = sum + bytes[i];
  }
}

}  // namespace sotto::fuzz

#ifdef SOTTO_WITH_LIBFUZZER

extern "C" int LLVMFuzzerRunDriver(int* argc, char*** argv, int (*call)(const uint8_t* data, size_t size));

int main(int argc, char** argv) {
  sotto::set_log_level(sotto::LogLevel::kQuiet);
  at::set_num_threads(1);
  int number = 0;
  for (const std::string& seed : sotto::fuzz::seeds()) {
    sotto::fuzz::as_file("examples/" + std::to_string(number++), seed);
  }
  std::string examples = (sotto::fuzz::scratch() / "examples").string();
  std::vector<char*> arguments(argv, argv + argc);
  const bool is_replay =
      std::any_of(argv + 1, argv + argc, [](const char* a) { return sotto::fs::is_regular_file(a); });
  if (!is_replay) arguments.push_back(examples.data());
  argc = static_cast<int>(arguments.size());
  argv = arguments.data();
  return LLVMFuzzerRunDriver(&argc, &argv, LLVMFuzzerTestOneInput);
}

#else

namespace sotto::fuzz {
namespace {

constexpr time_t kSlow = 5;                    // seconds of the processor for one input
constexpr unsigned kStuck = 60;                // seconds of the clock, which other programs take from us
constexpr rlim_t kMemory = rlim_t{256} << 20;  // beyond what the program has when it begins
constexpr size_t kLongest = 1 << 16;

std::string* current = nullptr;  // for the handlers below
const char* program = "";

void keep_current(const char* why) {
  const std::string file =
      fmt::format("broken-{}-{}", fs::path(program).filename().string(), sha256(*current).substr(0, 12));
  std::ofstream(file, std::ios::binary) << *current;
  fmt::print(stderr, "{}: {}; the input is in {}\n", program, why, fs::absolute(file).string());
}

[[noreturn]] void on_signal(int signal) {
  keep_current(signal == SIGPROF   ? "more than five seconds"
               : signal == SIGALRM ? "it waits and does nothing"
                                   : strsignal(signal));
  std::_Exit(1);
}

void catch_signals() {
  static std::vector<char> stack(1 << 20);  // the usual one may be what has run out
  const stack_t other{.ss_sp = stack.data(), .ss_flags = 0, .ss_size = stack.size()};
  ::sigaltstack(&other, nullptr);
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_ONSTACK;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM, SIGPROF}) {
    ::sigaction(signal, &action, nullptr);
  }
}

// With sanitizers the address space says nothing.
void limit_memory() {
#ifndef __SANITIZE_ADDRESS__
  std::ifstream statistics("/proc/self/statm");
  rlim_t pages = 0;
  statistics >> pages;
  const rlim_t limit = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + kMemory;
  const rlimit limits{limit, limit};
  ::setrlimit(RLIMIT_AS, &limits);
#endif
}

void set_timers(time_t processor, unsigned clock) {
  const itimerval timer{.it_interval = {}, .it_value = {.tv_sec = processor, .tv_usec = 0}};
  ::setitimer(ITIMER_PROF, &timer, nullptr);
  ::alarm(clock);
}

void run(std::string& input) {
  current = &input;
  set_timers(kSlow, kStuck);
  try {
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  } catch (const std::exception& error) {
    keep_current(error.what());
    std::_Exit(1);
  }
  set_timers(0, 0);
}

class Mutator {
 public:
  Mutator(uint64_t seed, const std::vector<std::string>& examples) : stream_(seed, "fuzz"), examples_(examples) {}

  std::string next() {
    std::string input = examples_[pick(examples_.size())];
    for (size_t times = 1 + pick(6); times > 0; --times) change(input);
    if (input.size() > kLongest) input.resize(kLongest);
    return input;
  }

 private:
  size_t pick(size_t count) { return static_cast<size_t>(stream_.below(count)); }

  void change(std::string& input) {
    static const std::vector<std::string> words{std::string(8, '\0'),
                                                std::string(8, '\xff'),
                                                std::string(4, '\xff'),
                                                "-1",
                                                "0",
                                                "1e999",
                                                "NaN",
                                                "null",
                                                "{}",
                                                "[]",
                                                "\"\"",
                                                "9223372036854775807",
                                                "18446744073709551616",
                                                "\n",
                                                "../",
                                                "\xf0\x9f\x98\x80",
                                                std::string("\x00\x00\x00\x80", 4)};
    const size_t at = pick(input.size() + 1);
    const size_t length = std::min(input.size() - at, size_t{1} << pick(10));
    const std::string& other = examples_[pick(examples_.size())];
    switch (pick(8)) {
      case 0:
        if (at < input.size()) input[at] = static_cast<char>(pick(256));
        break;
      case 1:
        if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << pick(8)));
        break;
      case 2:
        input.erase(at, length);
        break;
      case 3:
        input.insert(at, input.substr(pick(input.size() + 1), length));
        break;
      case 4:
        input.insert(at, other.substr(pick(other.size() + 1), size_t{1} << pick(10)));
        break;
      case 5:
        input.replace(at, length, words[pick(words.size())]);
        break;
      case 6:
        input.resize(at);
        break;
      default:
        if (at < input.size()) input[at] = static_cast<char>(input[at] + static_cast<int>(pick(3)) - 1);
    }
  }

  RandomStream stream_;
  const std::vector<std::string>& examples_;
};

void add_files(const fs::path& path, std::vector<std::string>& inputs) {
  if (!fs::is_directory(path)) {
    inputs.push_back(read_file(path));
    return;
  }
  for (const auto& entry : fs::directory_iterator(path)) inputs.push_back(read_file(entry.path()));
}

int drive(int argc, char** argv) {
  program = argv[0];
  double seconds = 3600;
  uint64_t seed = 1;
  std::optional<int64_t> runs;
  std::vector<std::string> inputs;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto value = argument.substr(argument.find('=') + 1);
    if (argument.starts_with("-max_total_time="))
      seconds = std::stod(value);
    else if (argument.starts_with("-runs="))
      runs = std::stoll(value);
    else if (argument.starts_with("-seed="))
      seed = std::stoull(value);
    else if (!argument.starts_with("-"))
      add_files(argument, inputs);
  }
  const std::vector<std::string> examples = seeds();
  inputs.insert(inputs.end(), examples.begin(), examples.end());
  std::string empty;
  run(empty);
  catch_signals();
  limit_memory();
  for (std::string& input : inputs) run(input);
  Mutator mutator(seed, inputs);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  int64_t done = 0;
  while ((!runs || done < *runs) && std::chrono::steady_clock::now() < end) {
    std::string input = mutator.next();
    run(input);
    ++done;
  }
  fmt::print("{}: {} inputs of {} examples, seed {}\n", fs::path(program).filename().string(), done, inputs.size(),
             seed);
  return 0;
}

}  // namespace
}  // namespace sotto::fuzz

int main(int argc, char** argv) {
  sotto::set_log_level(sotto::LogLevel::kQuiet);
  at::set_num_threads(1);
  return sotto::fuzz::drive(argc, argv);
}

#endif
