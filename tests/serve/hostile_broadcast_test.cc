// Broadcasts of the right names and kinds whose sizes fit nothing: refused in one line, and nothing is paid.
#include "../support/expect_user_error.h"
#include "at_home.h"

#include <gtest/gtest.h>

namespace sotto::serve {
namespace {

TEST(HostileBroadcast, SizesThatFitNothingAreRefused) {
  const federation::Setup setup = federation::small_setup(
      "rounds = 2\n[data]\nclients = 2\n[federation]\nbatch = 16\n[method]\nname = \"ldp-fedavg\"\n" +
      federation::privacy_terms("ldp-fedavg"));
  const federation::FederationPlan plan = plan_of(setup);
  const TempFolder folder;
  HomeOf home(folder.path() / "home", setup, plan, 0);
  methods::Broadcast bad = setup.method().make_server(setup.public_context())->open();
  bad.values = clone(bad.values);
  for (NamedTensor& tensor : bad.values) {
    if (tensor.value.dim() == 2) tensor.value = at::zeros({3, 5});
  }
  EXPECT_USER_ERROR(home.member().work(bad), "does not fit the model");
  EXPECT_USER_ERROR(home.member().evaluate(bad), "does not fit the model");
  EXPECT_EQ(home.home().ledger().rows(), 0);
  bad.values.clear();
  EXPECT_USER_ERROR(home.member().evaluate(bad), "has no '");
  EXPECT_TRUE(home.member().work(setup.method().make_server(setup.public_context())->open()).upload);
}

}  // namespace
}  // namespace sotto::serve
