#include "federation/cohort.h"

#include "base/random.h"

#include <cmath>
#include <numeric>

namespace sotto::federation {
namespace {

// Geometric gaps between chosen clients: O(cohort), not O(clients).
std::vector<int64_t> poisson_sample(int64_t clients, double rate, RandomStream& stream) {
  std::vector<int64_t> chosen;
  const double log_miss = std::log1p(-rate);
  const auto gap = [&] { return std::floor(std::log1p(-stream.uniform()) / log_miss); };
  double next = gap();
  while (next < static_cast<double>(clients)) {
    chosen.push_back(static_cast<int64_t>(next));
    next += 1 + gap();
  }
  return chosen;
}

}  // namespace

std::vector<int64_t> sample_cohort(const config::RunSpec& spec, int64_t round) {
  const int64_t clients = spec.data.clients;
  const int64_t cohort = spec.federation.cohort == 0 ? clients : spec.federation.cohort;
  RandomStream stream(spec.seed, "cohort", static_cast<uint64_t>(round));
  if (cohort == clients) {
    std::vector<int64_t> everyone(static_cast<size_t>(clients));
    std::iota(everyone.begin(), everyone.end(), 0);
    return everyone;
  }
  if (spec.federation.sampling == methods::CohortSampling::kPoisson) {
    return poisson_sample(clients, static_cast<double>(cohort) / static_cast<double>(clients), stream);
  }
  return stream.sample_without_replacement(clients, cohort);
}

std::vector<int32_t> count_participations(const config::RunSpec& spec) {
  const auto clients = static_cast<size_t>(spec.data.clients);
  if (spec.federation.cohort == 0 || spec.federation.cohort == spec.data.clients) {
    return std::vector<int32_t>(clients, static_cast<int32_t>(spec.rounds));
  }
  std::vector<int32_t> counts(clients, 0);
  for (int64_t round = 1; round <= spec.rounds; ++round) {
    for (const int64_t client : sample_cohort(spec, round)) ++counts[static_cast<size_t>(client)];
  }
  return counts;
}

}  // namespace sotto::federation
