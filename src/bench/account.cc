#include "bench/account.h"

#include "bench/median.h"
#include "privacy/accounting/accountant.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <vector>

namespace sotto::bench {
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

}  // namespace

nlohmann::json measure_accountants() {
  std::vector<double> pld;
  std::vector<double> exact;
  for (int repeat = 0; repeat < 11; ++repeat) {
    pld.push_back(seconds_of(privacy::Method::kPld, privacy::Step::gaussian(1, 0.01), 10'000));
    for (int i = 0; i < 20; ++i) {
      exact.push_back(seconds_of(privacy::Method::kExact, privacy::Step::gaussian(1 + 0.1 * i), 10'000));
    }
  }
  return {{"pld_10000_steps_ms", median(pld) * 1e3}, {"exact_us", median(exact) * 1e6}};
}

}  // namespace sotto::bench
