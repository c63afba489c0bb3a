#include "methods/dpsgd/rpdp_fl.h"

#include "base/error.h"
#include "base/random.h"
#include "methods/dpsgd/noisy_training.h"
#include "methods/dpsgd/sampling_curve.h"
#include "privacy/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace sotto::methods {
namespace {

struct Options {
  double noise_multiplier = 0;  // 0 = such that the largest budget is sampled as often as the batch size says
  std::vector<double> budgets;  // of records, never above their client's; empty = the client's own
  std::vector<double> shares;   // how often each is drawn; empty = equally often
};

Options read_own(settings::Section& section) {
  Options o;
  o.noise_multiplier = section.number("noise_multiplier", o.noise_multiplier, settings::kNonNegative);
  o.budgets = section.numbers("record_budgets", o.budgets, settings::kPositive);
  o.shares = section.numbers("record_shares", o.shares, settings::kPositive);
  if (!o.shares.empty() && o.shares.size() != o.budgets.size()) {
    section.fail("record_shares", fmt::format("has {} numbers for {} record budgets; give one share per budget",
                                              o.shares.size(), o.budgets.size()));
  }
  if (o.shares.empty()) o.shares.assign(std::max<size_t>(o.budgets.size(), 1), 1.0);
  const double total = std::accumulate(o.shares.begin(), o.shares.end(), 0.0);
  for (double& share : o.shares) share /= total;
  return o;
}

// What a record may spend, by the number of its budget.
std::vector<double> record_budgets(const Options& options, double client_budget) {
  if (options.budgets.empty()) return {client_budget};
  std::vector<double> budgets = options.budgets;
  for (double& budget : budgets) budget = std::min(budget, client_budget);
  return budgets;
}

double noise_multiplier(const Options& options, const PublicContext& context, const privacy::DescentPlan& plan) {
  if (options.noise_multiplier > 0) return options.noise_multiplier;
  const privacy::PrivacyTerms& privacy = *context.spec.privacy;
  const double most =
      privacy.budgets.empty() ? privacy.epsilon : *std::max_element(privacy.budgets.begin(), privacy.budgets.end());
  const auto budgets = record_budgets(options, most);
  const int64_t participations = context.facts.most_participations;
  return privacy::noise_multiplier_for(*std::max_element(budgets.begin(), budgets.end()), privacy.delta,
                                       plan.touches() * std::max<int64_t>(participations, 1), plan.rate,
                                       plan.neighbours.adjacency);
}

// A record's budget goes by its row, and one record more moves all rows after it.
void refuse_budgets_by_row(const Options& options, const privacy::DescentPlan& plan) {
  if (options.budgets.size() < 2 || plan.neighbours.adjacency != privacy::Adjacency::kAddRemove) return;
  fail_user(
      "method.record_budgets: under \"add-remove\" one more record would deal all those after it other budgets; give "
      "one "
      "budget, or choose \"zero-out\" or \"replace\"");
}

enum class RateRule {
  kCertified,  // the largest rate that the accountant certifies
  kPrinted     // what the fitted curve says
};

void price(const Options& options, RateRule rule, const PublicContext& context, const ClientFacts& client,
           privacy::DescentPlan& plan) {
  refuse_budgets_by_row(options, plan);
  plan.noise_multiplier = noise_multiplier(options, context, plan);
  const int64_t steps = plan.touches() * std::max<int64_t>(client.participations, 1);
  const double delta = context.spec.privacy->delta;
  const privacy::Adjacency adjacency = plan.neighbours.adjacency;
  privacy::RecordRates rates;
  rates.shares = options.shares;
  for (const double budget : record_budgets(options, client.epsilon)) {
    if (rule == RateRule::kPrinted) {
      const double printed_multiplier = plan.noise_multiplier * privacy::sum_sensitivity(1.0, adjacency);
      rates.rates.push_back(fit_sampling_curve(printed_multiplier, steps, delta).rate(budget));
    } else {
      rates.rates.push_back(privacy::sampling_rate_for(budget, delta, steps, plan.noise_multiplier, adjacency));
    }
  }
  rates.of = [shares = options.shares, seed = context.spec.seed](int64_t record) {
    double left = RandomStream(seed, "record-budget", 0, static_cast<uint64_t>(record)).uniform();
    size_t drawn = 0;
    while (drawn + 1 < shares.size() && (left -= shares[drawn]) >= 0) ++drawn;
    return drawn;
  };
  plan.record_rates = std::move(rates);
}

NoisyTraining read_options(settings::Section& section) {
  NoisyTraining o;
  o.clip = section.number("clip", o.clip, settings::kPositive);
  o.sampling = privacy::Sampling::kPoisson;
  const Options options = read_own(section);
  const auto priced_by = [=](RateRule rule) {
    return [=](const PublicContext& context, const ClientFacts& client, privacy::DescentPlan& plan) {
      price(options, rule, context, client, plan);
    };
  };
  o.price = priced_by(RateRule::kCertified);
  o.printed_price = priced_by(RateRule::kPrinted);
  return o;
}

}  // namespace

MethodEntry rpdp_fl() {
  return noisy_training("rpdp-fl",
                        "DP-SGD at the clients with one noise for all; a record's budget sets how often it is sampled",
                        "Liu et al., CCS 2024", read_options, PaperVariant::kPrinted);
}

}  // namespace sotto::methods
