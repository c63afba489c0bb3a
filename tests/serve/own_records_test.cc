// "Public" weights and features that are made of a home's own records: only the home can know.
#include "../models/temp_home.h"
#include "../support/expect_user_error.h"
#include "at_home.h"
#include "member/records.h"
#include "models/pretrain.h"

#include <gtest/gtest.h>

namespace sotto::serve {
namespace {

TEST(OwnRecords, AreNotPublicAtTheirHome) {
  const models::TempHome home;
  const data::DataOptions own = models::write_dataset(home / "own.safetensors", models::dark_and_bright(40, 8));
  const data::DataOptions others =
      models::write_dataset(home / "others.safetensors", models::dark_and_bright(40, 8, 5));
  models::PretrainOptions pretraining;
  pretraining.name = "shades";
  pretraining.model.name = "mlp";
  pretraining.model.hidden = {4};
  pretraining.data = own;
  pretraining.epochs = 1;
  models::pretrain(pretraining, [](const models::EpochReport&) {});
  const auto loaded = [](const data::DataOptions& data, const std::string& weights, const std::string& features) {
    config::RunSpec spec = config::parse_run_spec(
        fmt::format("[data]\nclients = 2\nfeatures = \"{}\"\n[model]\nname = \"mlp\"\nhidden = [4]\nweights = \"{}\"\n"
                    "[method]\nname = \"ldp-fedavg\"\n{}",
                    features, weights, federation::privacy_terms("ldp-fedavg")),
        "test.toml", {});
    const federation::FederationPlan plan(
        spec,
        table(features.empty()
                  ? "kind = \"images\"\nshape = [1, 8, 8]\nclasses = [\"dark\", \"bright\"]\nrecords = 40\n"
                  : "kind = \"features\"\nshape = [4]\nclasses = [\"dark\", \"bright\"]\nrecords = 40\n",
              "declared"),
        table("", "serve"));
    member::Policy policy = policy_for(spec);
    policy.data = data;
    return member::load_records(policy, plan);
  };
  for (const char* features : {"", "shades"}) {
    const std::string weights = *features == 0 ? "shades" : "";
    EXPECT_USER_ERROR(loaded(own, weights, features), "was pretrained on");
    EXPECT_USER_ERROR(loaded(own, weights, features), "the clients' own records");
    EXPECT_EQ(loaded(others, weights, features)->dataset.train.size(), 40);
  }
}

}  // namespace
}  // namespace sotto::serve
