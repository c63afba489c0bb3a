#include "privacy/accounting/accountant.h"

#include "base/error.h"
#include "privacy/accounting/composition_theorems.h"
#include "privacy/accounting/exact.h"
#include "privacy/accounting/pld.h"
#include "privacy/accounting/renyi.h"
#include "privacy/accounting/saddle.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace sotto::privacy {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct MethodText {
  Method method;
  std::string_view name;
  std::string_view description;
};

constexpr std::array<MethodText, 10> kMethods = {{
    {Method::kExact, "exact", "closed form, tight"},
    {Method::kPld, "pld", "certified upper bound, privacy-loss distribution"},
    {Method::kSaddle, "saddle", "estimate by contour integral, not a proof"},
    {Method::kRdp, "rdp", "Rényi, all orders, tight conversion"},
    {Method::kRdpPaper, "rdp-paper", "Rényi, integer orders 2 to 64, classical conversion"},
    {Method::kRdpPaperTight, "rdp-paper-tight", "Rényi, integer orders 2 to 64, tight conversion"},
    {Method::kZcdp, "zcdp", "zero-concentrated: rho + 2 sqrt(rho ln 1/delta)"},
    {Method::kClassical, "classical", "sqrt(2 ln(1.25/delta))/z, one step, epsilon up to 1"},
    {Method::kBasic, "basic", "sum of the steps' own epsilons"},
    {Method::kAdvanced, "advanced", "advanced composition, heterogeneous"},
}};

constexpr std::array<Method, 10> kMethodList = {
    Method::kExact,         Method::kPld,  Method::kSaddle,    Method::kRdp,   Method::kRdpPaper,
    Method::kRdpPaperTight, Method::kZcdp, Method::kClassical, Method::kBasic, Method::kAdvanced};

// ln δ where only ε(δ) has a formula: the least δ, to 1e-10, at which ε(δ) is small enough.
template <typename F>
double invert_epsilon(const F& epsilon_at, double epsilon) {
  double low = -700;
  double high = -1e-12;
  if (epsilon_at(std::exp(high)) > epsilon) return 0;
  if (epsilon_at(std::exp(low)) <= epsilon) return low;
  while (high - low > 1e-10 * std::abs(high)) {
    const double middle = (low + high) / 2;
    (epsilon_at(std::exp(middle)) <= epsilon ? high : low) = middle;
  }
  return high;
}

class ExactAccountant : public Accountant {
  double compute_epsilon(double delta) const override {
    require_closed_form();
    return exact_epsilon(steps(), delta);
  }
  double compute_log_delta(double epsilon) const override {
    require_closed_form();
    return exact_log_delta(steps(), epsilon);
  }
  void require_closed_form() const {
    const std::string reason = why_not_exact(steps());
    if (!reason.empty()) fail_user("{}", reason);
  }
};

// A single step has a closed form, which is as certain as the grid and tighter.
class PldAccountant : public Accountant {
  bool single() const { return total_count(steps()) == 1 && why_not_exact(steps()).empty(); }
  double compute_epsilon(double delta) const override {
    return single() ? exact_epsilon(steps(), delta) : pld_epsilon(steps(), delta);
  }
  double compute_log_delta(double epsilon) const override {
    return single() ? exact_log_delta(steps(), epsilon) : pld_log_delta(steps(), epsilon);
  }
};

class SaddleAccountant : public Accountant {
  std::vector<Direction> directions() const {
    const bool symmetric =
        std::all_of(steps().begin(), steps().end(), [](const Steps& entry) { return is_symmetric(entry.step); });
    return symmetric ? std::vector{Direction::kRemove} : std::vector{Direction::kRemove, Direction::kAdd};
  }
  bool closed_form() const { return why_not_exact(steps()).empty(); }
  double compute_epsilon(double delta) const override {
    if (closed_form()) return exact_epsilon(steps(), delta);
    double largest = 0;
    for (const Direction direction : directions()) {
      largest = std::max(largest, saddle_epsilon(steps(), direction, delta));
    }
    return largest;
  }
  double compute_log_delta(double epsilon) const override {
    if (closed_form()) return exact_log_delta(steps(), epsilon);
    double largest = -kInfinity;
    for (const Direction direction : directions()) {
      largest = std::max(largest, saddle_log_delta(steps(), direction, epsilon));
    }
    return largest;
  }
};

// Where every step has a largest loss, their sum is a bound too, at any δ.
class RenyiAccountant : public Accountant {
 public:
  RenyiAccountant(Orders orders, Conversion conversion) : orders_(orders), conversion_(conversion) {}

 private:
  double pure_bound() const {
    double sum = 0;
    for (const Steps& entry : steps()) {
      if (entry.step.kind == Step::Kind::kApproximate && entry.step.delta > 0) {
        fail_user("Rényi divergence is infinite for approximate steps: use pld");
      }
      sum += static_cast<double>(entry.count) * largest_loss(entry.step);
    }
    return sum * (1 + 4e-16);
  }
  double compute_epsilon(double delta) const override {
    return std::min(pure_bound(), RenyiCurve(steps()).epsilon(delta, orders_, conversion_).value);
  }
  double compute_log_delta(double epsilon) const override {
    if (epsilon >= pure_bound()) return -kInfinity;
    return RenyiCurve(steps()).log_delta(epsilon, orders_, conversion_).value;
  }

  Orders orders_;
  Conversion conversion_;
};

class ZcdpAccountant : public Accountant {
  double compute_epsilon(double delta) const override { return zcdp_epsilon(steps(), delta); }
  double compute_log_delta(double epsilon) const override { return zcdp_log_delta(steps(), epsilon); }
};

class ClassicalAccountant : public Accountant {
  double compute_epsilon(double delta) const override { return classical_epsilon(steps(), delta); }
  double compute_log_delta(double epsilon) const override { return classical_log_delta(steps(), epsilon); }
};

class BasicAccountant : public Accountant {
  double compute_epsilon(double delta) const override { return basic_epsilon(steps(), delta); }
  double compute_log_delta(double epsilon) const override {
    return invert_epsilon([&](double delta) { return basic_epsilon(steps(), delta); }, epsilon);
  }
};

class AdvancedAccountant : public Accountant {
  double compute_epsilon(double delta) const override { return advanced_epsilon(steps(), delta); }
  double compute_log_delta(double epsilon) const override {
    return invert_epsilon([&](double delta) { return advanced_epsilon(steps(), delta); }, epsilon);
  }
};

const MethodText& text_of(Method method) {
  return *std::find_if(kMethods.begin(), kMethods.end(), [&](const MethodText& text) { return text.method == method; });
}

}  // namespace

std::span<const Method> all_methods() {
  return kMethodList;
}

std::string_view to_text(Method method) {
  return text_of(method).name;
}

std::string_view describe(Method method) {
  return text_of(method).description;
}

Method method_from_text(std::string_view name) {
  std::string names;
  for (const MethodText& text : kMethods) {
    if (text.name == name) return text.method;
    names.append(names.empty() ? "" : ", ").append(text.name);
  }
  fail_user("there is no method '{}': it is one of {}", name, names);
}

void Accountant::compose(const Step& step, int64_t count) {
  std::vector<Steps> all = steps_;
  all.push_back({step, count});
  require_valid(all);
  steps_ = merged(all);
}

double Accountant::epsilon(double delta) const {
  require_valid_delta(delta);
  return steps_.empty() ? 0 : compute_epsilon(delta);
}

double Accountant::log_delta(double epsilon) const {
  require_valid_epsilon(epsilon);
  return steps_.empty() ? -kInfinity : compute_log_delta(epsilon);
}

double Accountant::delta(double epsilon) const {
  const double value = std::exp(log_delta(epsilon));
  return value > 0 && value < 1 ? std::nextafter(value, 1.0) : value;
}

std::unique_ptr<Accountant> make_accountant(Method method) {
  switch (method) {
    case Method::kExact:
      return std::make_unique<ExactAccountant>();
    case Method::kPld:
      return std::make_unique<PldAccountant>();
    case Method::kSaddle:
      return std::make_unique<SaddleAccountant>();
    case Method::kRdp:
      return std::make_unique<RenyiAccountant>(Orders::kReal, Conversion::kTight);
    case Method::kRdpPaper:
      return std::make_unique<RenyiAccountant>(Orders::kIntegersTo64, Conversion::kClassical);
    case Method::kRdpPaperTight:
      return std::make_unique<RenyiAccountant>(Orders::kIntegersTo64, Conversion::kTight);
    case Method::kZcdp:
      return std::make_unique<ZcdpAccountant>();
    case Method::kClassical:
      return std::make_unique<ClassicalAccountant>();
    case Method::kBasic:
      return std::make_unique<BasicAccountant>();
    case Method::kAdvanced:
      return std::make_unique<AdvancedAccountant>();
  }
  return nullptr;
}

Method default_method(std::span<const Steps> steps) {
  const bool amplified = std::any_of(steps.begin(), steps.end(), [](const Steps& s) { return s.step.amplified(); });
  return !amplified && why_not_exact(steps).empty() ? Method::kExact : Method::kPld;
}

}  // namespace sotto::privacy
