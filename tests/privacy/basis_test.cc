#include "privacy/basis.h"

#include <gtest/gtest.h>

namespace sotto::privacy {
namespace {

TEST(Basis, OnlySecureNoiseProves) {
  EXPECT_EQ(basis_of(Generator::kSecure), Basis::kProven);
  EXPECT_EQ(basis_of(Generator::kReplay), Basis::kSimulated);
  EXPECT_EQ(basis_of("secure"), Basis::kProven);
  EXPECT_EQ(basis_of("replay"), Basis::kSimulated);
  EXPECT_EQ(basis_of("none"), Basis::kProven) << "what is sent as it is, or not at all, has the ε that it has";
  EXPECT_EQ(basis_of("something newer"), Basis::kSimulated) << "what is not known is not proven";
}

TEST(Basis, SeveralRunsAreAsGoodAsTheWeakest) {
  EXPECT_EQ(weaker(Basis::kProven, Basis::kProven), Basis::kProven);
  EXPECT_EQ(weaker(Basis::kProven, Basis::kSimulated), Basis::kSimulated);
  EXPECT_EQ(weaker(Basis::kSimulated, Basis::kProven), Basis::kSimulated);
}

TEST(Basis, NamesItsEpsilonAndSaysWhy) {
  EXPECT_EQ(epsilon_name(Basis::kProven), "proven ε");
  EXPECT_EQ(epsilon_name(Basis::kSimulated), "simulated ε");
  EXPECT_EQ(why_simulated(Basis::kProven, true), "");
  EXPECT_EQ(why_simulated(Basis::kSimulated, false), "noise can be recomputed from the seed");
  EXPECT_EQ(why_simulated(Basis::kSimulated, true), "noise and cohorts can be recomputed from the seed");
}

}  // namespace
}  // namespace sotto::privacy
