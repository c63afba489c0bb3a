#include "federation/cohort.h"

#include "base/random.h"
#include "privacy/noise/uniform.h"

#include <algorithm>
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

bool takes_everyone(const config::RunSpec& spec) {
  return spec.federation.cohort == 0 || spec.federation.cohort == spec.data.clients;
}

std::vector<int64_t> next_on_the_ring(const config::RunSpec& spec, int64_t round) {
  const int64_t clients = spec.data.clients, cohort = spec.federation.cohort;
  const std::vector<int64_t> ring = RandomStream(spec.seed, "cohort-ring").permutation(clients);
  std::vector<int64_t> chosen;
  for (int64_t place = (round - 1) * cohort; place < round * cohort; ++place) {
    chosen.push_back(ring[static_cast<size_t>(place % clients)]);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

double poisson_rate(const config::RunSpec& spec) {
  return static_cast<double>(spec.federation.cohort) / static_cast<double>(spec.data.clients);
}

}  // namespace

std::vector<int64_t> sample_cohort(const config::RunSpec& spec, int64_t round) {
  const int64_t clients = spec.data.clients;
  RandomStream stream(spec.seed, "cohort", static_cast<uint64_t>(round));
  if (takes_everyone(spec)) {
    std::vector<int64_t> everyone(static_cast<size_t>(clients));
    std::iota(everyone.begin(), everyone.end(), 0);
    return everyone;
  }
  if (spec.federation.sampling == methods::CohortSampling::kCyclic) return next_on_the_ring(spec, round);
  if (spec.federation.sampling == methods::CohortSampling::kPoisson) {
    return poisson_sample(clients, poisson_rate(spec), stream);
  }
  return stream.sample_without_replacement(clients, spec.federation.cohort);
}

std::vector<int64_t> draw_cohort(const config::RunSpec& spec, const privacy::Seed& key, int64_t round) {
  if (takes_everyone(spec) || spec.federation.sampling == methods::CohortSampling::kCyclic) {
    return sample_cohort(spec, round);
  }
  privacy::NoiseSource source = privacy::NoiseSource::from_key(key, "cohort", static_cast<uint64_t>(round));
  if (spec.federation.sampling == methods::CohortSampling::kPoisson) {
    return privacy::poisson_sample(spec.data.clients, poisson_rate(spec), source);
  }
  if (spec.federation.sampling == methods::CohortSampling::kSecret) {
    return privacy::fixed_sample(spec.data.clients, spec.federation.cohort, source);
  }
  RandomStream stream(source.bits(), "cohort", static_cast<uint64_t>(round));
  return stream.sample_without_replacement(spec.data.clients, spec.federation.cohort);
}

bool has_secret_cohorts(const config::RunSpec& spec) {
  return spec.privacy && spec.privacy->generator == privacy::Generator::kSecure &&
         spec.privacy->unit == privacy::Unit::kClient && methods::hides_cohorts(spec.federation.sampling) &&
         !takes_everyone(spec);
}

std::vector<int32_t> count_participations(const config::RunSpec& spec) {
  const auto clients = static_cast<size_t>(spec.data.clients);
  if (takes_everyone(spec) || has_secret_cohorts(spec)) {
    return std::vector<int32_t>(clients, static_cast<int32_t>(spec.planned_rounds()));
  }
  std::vector<int32_t> counts(clients, 0);
  for (int64_t round = 1; round <= spec.planned_rounds(); ++round) {
    for (const int64_t client : sample_cohort(spec, round)) ++counts[static_cast<size_t>(client)];
  }
  return counts;
}

CohortSchedule::CohortSchedule(const config::RunSpec& spec) : spec_(spec) {
  if (has_secret_cohorts(spec)) key_ = privacy::NoiseSource::fresh_key();
}

std::vector<int64_t> CohortSchedule::cohort(int64_t round) const {
  return key_ ? draw_cohort(spec_, *key_, round) : sample_cohort(spec_, round);
}

}  // namespace sotto::federation
