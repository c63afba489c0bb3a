#include "cli/bench_account.h"

#include "cli/bench_figures.h"
#include "cli/command.h"
#include "cli/output.h"
#include "privacy/accounting/accountant.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <vector>

namespace sotto::cli {
namespace {

constexpr double kDelta = 1e-5;

double seconds_of(privacy::Method method, const privacy::Step& step, int64_t count) {
  const auto start = std::chrono::steady_clock::now();
  const auto accountant = privacy::make_accountant(method);
  accountant->compose(step, count);
  const double epsilon = accountant->epsilon(kDelta);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return epsilon > 0 ? seconds : 0;
}

void bench_account(const OutputOptions& output) {
  std::vector<double> pld;
  std::vector<double> exact;
  for (int repeat = 0; repeat < 11; ++repeat) {
    pld.push_back(seconds_of(privacy::Method::kPld, privacy::Step::gaussian(1, 0.01), 10'000));
    for (int i = 0; i < 20; ++i) {
      exact.push_back(seconds_of(privacy::Method::kExact, privacy::Step::gaussian(1 + 0.1 * i), 10'000));
    }
  }
  print_figures({{"pld_10000_steps_ms", median(pld) * 1e3}, {"exact_us", median(exact) * 1e6}}, output);
}

}  // namespace

void add_bench_account(Command& bench) {
  auto output = std::make_shared<OutputOptions>();
  Command command = bench.subcommand("account", "Time the accountants: medians of repeated questions");
  add_output_options(command, *output, "Print the times as JSON");
  add_example(command, "sotto bench account --json");
  command.callback([output] { bench_account(*output); });
}

}  // namespace sotto::cli
