// Accountants: what a composition of steps costs, by a stated method.
#pragma once

#include "privacy/accounting/step.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace sotto::privacy {

enum class Method {
  kExact,          // closed forms; tight
  kPld,            // certified upper bound from the privacy-loss distribution; tight to 1e-4
  kSaddle,         // contour integral: an estimate, never a proof
  kRdp,            // Rényi, all real orders, tight conversion
  kRdpPaper,       // integer orders 2 … 64, classical conversion
  kRdpPaperTight,  // integer orders 2 … 64, tight conversion
  kZcdp,
  kClassical,
  kBasic,
  kAdvanced,
};

std::span<const Method> all_methods();
std::string_view to_text(Method method);
// An unknown name is a UserError that lists the known ones.
Method method_from_text(std::string_view name);
// One line for people: how the number was obtained.
std::string_view describe(Method method);

// Answers are rounded up. What a method does not cover it refuses with a UserError that gives the reason.
class Accountant {
 public:
  virtual ~Accountant() = default;

  // Adds `count` steps, chosen adaptively. Invalid parameters are a UserError and leave the accountant as it was.
  void compose(const Step& step, int64_t count = 1);

  // The smallest ε ≥ 0 the method certifies at `delta` in (0, 1); ∞ if there is none.
  double epsilon(double delta) const;
  // δ at ε ≥ 0, and its natural logarithm, which does not underflow.
  double delta(double epsilon) const;
  double log_delta(double epsilon) const;

  std::span<const Steps> steps() const { return steps_; }

 protected:
  // Steps are valid, merged and not empty.
  virtual double compute_epsilon(double delta) const = 0;
  virtual double compute_log_delta(double epsilon) const = 0;

 private:
  std::vector<Steps> steps_;
};

std::unique_ptr<Accountant> make_accountant(Method method);

// exact where there is a closed form, otherwise pld.
Method default_method(std::span<const Steps> steps);

}  // namespace sotto::privacy
