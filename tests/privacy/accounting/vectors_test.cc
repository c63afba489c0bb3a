// Every row of the reference tables that speaks of a method we have.
#include "base/error.h"
#include "privacy/accounting/accountant.h"
#include "privacy/accounting/calibrate.h"
#include "privacy/accounting/gaussian.h"
#include "privacy/accounting/renyi.h"
#include "reference_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

namespace sotto::privacy {
namespace {

std::optional<Method> method_of(const std::string& name) {
  static const std::map<std::string, Method> names = {
      {"analytic", Method::kExact},
      {"exact", Method::kExact},
      {"classic", Method::kClassical},
      {"rdp_int_orders_2_64", Method::kRdpPaper},
      {"rdp_int_orders_2_64_cks", Method::kRdpPaperTight},
      {"rdp_tight", Method::kRdp},
      {"zcdp_bs16", Method::kZcdp},
      {"pld", Method::kPld},
      {"pure_basic", Method::kBasic},
  };
  const auto found = names.find(name);
  return found == names.end() ? std::nullopt : std::optional(found->second);
}

double answer(Method method, const Step& step, int64_t count, double delta) {
  const auto accountant = make_accountant(method);
  accountant->compose(step, count);
  return accountant->epsilon(delta);
}

// Bounds may be above the reference by rounding, never below it.
void expect_just_above(double value, double reference, double tolerance, const std::string& id) {
  const double slack = std::max(tolerance, 2e-14);
  EXPECT_GE(value, reference * (1 - slack)) << id;
  EXPECT_LE(value, reference * (1 + slack)) << id;
}

// Tables with coarse lists of orders are beaten a little by a search over all of them.
bool has_coarse_orders(const ReferenceRow& row) {
  return row.text("source").starts_with("opacus RDP, 1.1") || row.text("source").starts_with("opacus DEFAULT");
}

TEST(Vectors, GaussianEpsilon) {
  int checked = 0;
  for (const ReferenceRow& row : reference_rows("01_gaussian_epsilon.csv")) {
    const auto method = method_of(row.text("method"));
    if (!method) continue;
    const Step step = Step::gaussian(row.number("sigma"));
    const auto count = static_cast<int64_t>(row.number("T"));
    const double reference = row.number("epsilon");
    ++checked;
    if (*method == Method::kClassical && reference > 1) {
      EXPECT_THROW(answer(*method, step, count, row.number("delta")), UserError) << row.text("id");
      continue;
    }
    expect_just_above(answer(*method, step, count, row.number("delta")), reference, row.number("tol_rel"),
                      row.text("id"));
  }
  EXPECT_GT(checked, 250);
}

TEST(Vectors, GaussianLogDelta) {
  for (const ReferenceRow& row : reference_rows("02_gaussian_delta.csv")) {
    const auto accountant = make_accountant(Method::kExact);
    accountant->compose(Step::gaussian(row.number("sigma")));
    const double reference = row.number("ln_delta");
    const double value = accountant->log_delta(row.number("epsilon"));
    EXPECT_NEAR(value, reference, 1e-13 * std::abs(reference)) << row.text("id");
    EXPECT_GE(value, reference * (1 + 1e-15)) << row.text("id");
  }
}

TEST(Vectors, RenyiDivergence) {
  for (const ReferenceRow& row : reference_rows("03_rdp_values.csv")) {
    const bool laplace = row.text("mechanism") == "laplace";
    const Step step = laplace ? Step::laplace(1 / std::stod(row.text("sigma").substr(4)))
                              : Step::gaussian(row.number("sigma"), row.number("q"));
    expect_just_above(renyi_divergence(step, row.number("order")), row.number("rdp"), row.number("tol_rel"),
                      row.text("id"));
  }
}

TEST(Vectors, SubsampledGaussianEpsilon) {
  for (const ReferenceRow& row : reference_rows("04_subsampled_gaussian_epsilon.csv")) {
    const Method method = method_of(row.text("method")).value();
    const Step step = Step::gaussian(row.number("sigma"), row.number("q"));
    const auto count = static_cast<int64_t>(row.number("T"));
    const double reference = row.number("epsilon");
    const double value = answer(method, step, count, row.number("delta"));
    if (method == Method::kPld) {
      EXPECT_GE(value, reference * (1 - row.number("tol_rel"))) << row.text("id");
      EXPECT_LE(value, reference * 1.0002) << row.text("id");
      const double estimate = answer(Method::kSaddle, step, count, row.number("delta"));
      EXPECT_NEAR(estimate, reference, row.number("tol_rel") * reference) << row.text("id");
    } else if (has_coarse_orders(row)) {
      EXPECT_LE(value, reference * (1 + 1e-6)) << row.text("id");
      EXPECT_GE(value, reference * 0.98) << row.text("id");
    } else {
      expect_just_above(value, reference, row.number("tol_rel"), row.text("id"));
    }
  }
}

TEST(Vectors, LaplaceEpsilon) {
  for (const ReferenceRow& row : reference_rows("05_laplace_epsilon.csv")) {
    const Method method = method_of(row.text("method")).value();
    const auto count = static_cast<int64_t>(row.number("T"));
    double reference = row.number("epsilon");
    if (row.text("notes") == "report min with pure_basic") {
      reference = std::min(reference, row.number("eps0") * row.number("T"));
    }
    expect_just_above(answer(method, Step::laplace(row.number("b")), count, row.number("delta")), reference,
                      row.number("tol_rel"), row.text("id"));
  }
}

TEST(Vectors, Calibration) {
  for (const ReferenceRow& row : reference_rows("06_calibration_sigma.csv")) {
    const Method method = method_of(row.text("method")).value();
    const bool replace = row.text("adjacency") == "replace-one";
    const Step shape = Step::gaussian(1, row.number("q"), replace ? Adjacency::kReplace : Adjacency::kAddRemove);
    const auto count = static_cast<int64_t>(row.number("T"));
    const CalibrationTarget target{row.number("epsilon"), row.number("delta"), method};
    const bool refused = row.text("sigma") == "infeasible" || (method == Method::kClassical && target.epsilon > 1);
    if (refused) {
      EXPECT_THROW(calibrate(target, shape, count), UserError) << row.text("id");
      continue;
    }
    const double value = calibrate(target, shape, count) * (replace ? 2 : 1);
    const double reference = row.number("sigma");
    if (method == Method::kPld) {
      EXPECT_GE(value, reference * (1 - row.number("tol_rel"))) << row.text("id");
      EXPECT_LE(value, reference * 1.0003) << row.text("id");
    } else if (has_coarse_orders(row)) {
      EXPECT_LE(value, reference * (1 + 1e-6)) << row.text("id");
      EXPECT_GE(value, reference * 0.98) << row.text("id");
    } else {
      expect_just_above(value, reference, row.number("tol_rel"), row.text("id"));
    }
  }
}

TEST(Vectors, PaperDefaults) {
  for (const ReferenceRow& row : reference_rows("09_paper_defaults.csv")) {
    if (row.text("method") != "exact" || row.text("mu").empty() || row.text("real_epsilon").empty()) continue;
    const auto accountant = make_accountant(Method::kExact);
    accountant->compose(Step::gaussian(1 / row.number("mu")));
    expect_just_above(accountant->epsilon(row.number("delta")), row.number("real_epsilon"), 1e-9, row.text("id"));
  }
}

TEST(Vectors, HeterogeneousComposition) {
  for (const ReferenceRow& row : reference_rows("10_heterogeneous_composition.csv")) {
    if (row.text("method").starts_with("exact")) {
      const auto accountant = make_accountant(Method::kExact);
      if (row.text("sigma_list").find("...") == std::string::npos) {
        std::istringstream list(row.text("sigma_list"));
        for (double sigma; list >> sigma;) accountant->compose(Step::gaussian(sigma));
      } else {
        accountant->compose(Step::gaussian(1 / row.number("mu")));
      }
      expect_just_above(accountant->epsilon(row.number("delta")), row.number("epsilon"), 1e-12, row.text("id"));
      continue;
    }
    const auto accountant = make_accountant(Method::kPld);
    double pure = 0;
    double sigma = 0;
    ASSERT_EQ(std::sscanf(row.text("sigmas").c_str(), "eps1=%lf, sigma=%lf x1", &pure, &sigma), 2);
    accountant->compose(Step::pure(pure));
    accountant->compose(Step::gaussian(sigma));
    expect_just_above(accountant->epsilon(row.number("delta")), row.number("epsilon"), 1e-4, row.text("id"));
  }
}

}  // namespace
}  // namespace sotto::privacy
