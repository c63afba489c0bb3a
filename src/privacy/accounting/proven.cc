#include "privacy/accounting/proven.h"

#include "privacy/accounting/accountant.h"
#include "privacy/accounting/exact.h"

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

namespace sotto::privacy {
namespace {

enum class Question { kEpsilon, kDelta };

using StepKey = std::tuple<int, double, double, double, double, int, int64_t, int64_t>;
using Key = std::tuple<Question, double, std::vector<StepKey>>;

class Answers {
 public:
  template <typename F>
  double get(const Key& key, const F& compute) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = known_.find(key);
      if (found != known_.end()) return found->second;
    }
    const double answer = compute();
    const std::lock_guard lock(mutex_);
    if (known_.size() >= kMost) known_.clear();
    known_.emplace(key, answer);
    return answer;
  }

 private:
  static constexpr size_t kMost = 10'000;
  std::mutex mutex_;
  std::map<Key, double> known_;
};

Answers& answers() {
  static Answers instance;
  return instance;
}

Key key_of(Question question, double argument, std::span<const Steps> steps) {
  std::vector<StepKey> keys;
  for (const Steps& entry : steps) {
    const Step& step = entry.step;
    keys.emplace_back(static_cast<int>(step.kind), step.noise_multiplier, step.epsilon, step.delta, step.sampling_rate,
                      static_cast<int>(step.adjacency), step.batches, entry.count);
  }
  return {question, argument, std::move(keys)};
}

double answer(Method method, Question question, std::span<const Steps> steps, double argument) {
  const auto accountant = make_accountant(method);
  for (const Steps& entry : steps) accountant->compose(entry.step, entry.count);
  return question == Question::kEpsilon ? accountant->epsilon(argument) : accountant->delta(argument);
}

// Steps of bounded range have no one worst pair. The one that covers them all has the variance of a uniform law, a third
// of ε², while their Rényi divergences are those of two ends, of at most a quarter. Either may win.
bool is_worth_renyi(std::span<const Steps> steps) {
  const auto has = [&](Step::Kind kind) {
    return std::any_of(steps.begin(), steps.end(), [&](const Steps& entry) { return entry.step.kind == kind; });
  };
  return has(Step::Kind::kBoundedRange) && !has(Step::Kind::kApproximate);
}

// Nothing is gained by a grid where ε is all but the sum of the largest losses.
bool is_nearly_sum(double epsilon, std::span<const Steps> steps) {
  double sum = 0;
  for (const Steps& entry : steps) sum += static_cast<double>(entry.count) * largest_loss(entry.step);
  return epsilon > 0.97 * sum;
}

double renyi_answer(Question question, std::vector<Steps> steps, double argument) {
  for (Steps& entry : steps) entry.step = entry.step.in_public();  // Rényi divergences know no better
  return answer(Method::kRdp, question, steps, argument);
}

double ask(Question question, std::span<const Steps> steps, double argument) {
  require_valid(steps);
  const std::vector<Steps> all = merged(steps);
  const bool closed = all_unsampled_gaussians(all);
  const auto compute = [&] {
    double bound = std::numeric_limits<double>::infinity();
    if (is_worth_renyi(all)) {
      bound = renyi_answer(question, all, argument);
      if (question == Question::kEpsilon && total_count(all) > 1 && is_nearly_sum(bound, all)) return bound;
    }
    return std::min(bound, answer(closed ? Method::kExact : Method::kPld, question, all, argument));
  };
  return closed ? compute() : answers().get(key_of(question, argument, all), compute);
}

}  // namespace

double proven_epsilon(std::span<const Steps> steps, double delta) {
  return ask(Question::kEpsilon, steps, delta);
}

double proven_delta(std::span<const Steps> steps, double epsilon) {
  return ask(Question::kDelta, steps, epsilon);
}

}  // namespace sotto::privacy
