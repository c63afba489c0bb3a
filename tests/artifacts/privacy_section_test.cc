#include "artifacts/privacy_section.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace sotto::artifacts {
namespace {

using nlohmann::json;

TEST(BasisFields, SayWhetherCohortsFollowFromTheSeedToo) {
  config::RunSpec spec;
  spec.data.clients = 5;
  EXPECT_EQ(basis_fields(spec, "secure"), json({{"basis", "proven"}, {"basis_why", nullptr}}));
  EXPECT_EQ(basis_fields(spec, "none"), json({{"basis", "proven"}, {"basis_why", nullptr}}));
  const json noise = {{"basis", "simulated"}, {"basis_why", "noise can be recomputed from the seed"}};
  const json both = {{"basis", "simulated"}, {"basis_why", "noise and cohorts can be recomputed from the seed"}};
  EXPECT_EQ(basis_fields(spec, "replay"), noise);
  spec.federation.sampling = methods::CohortSampling::kPoisson;
  EXPECT_EQ(basis_fields(spec, "replay"), noise) << "everybody takes part";
  spec.federation.cohort = 5;
  EXPECT_EQ(basis_fields(spec, "replay"), noise) << "as before";
  spec.federation.cohort = 2;
  EXPECT_EQ(basis_fields(spec, "replay"), both);
  spec.federation.sampling = methods::CohortSampling::kFixed;
  EXPECT_EQ(basis_fields(spec, "replay"), noise) << "no ε counts on a cohort of fixed size";
}

}  // namespace
}  // namespace sotto::artifacts
