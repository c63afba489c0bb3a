#include "privacy/accounting/proven.h"

#include "privacy/accounting/accountant.h"
#include "privacy/accounting/exact.h"

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

double ask(Question question, std::span<const Steps> steps, double argument) {
  require_valid(steps);
  const std::vector<Steps> all = merged(steps);
  const bool closed = all_unsampled_gaussians(all);
  const auto compute = [&] {
    const auto accountant = make_accountant(closed ? Method::kExact : Method::kPld);
    for (const Steps& entry : all) accountant->compose(entry.step, entry.count);
    return question == Question::kEpsilon ? accountant->epsilon(argument) : accountant->delta(argument);
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
