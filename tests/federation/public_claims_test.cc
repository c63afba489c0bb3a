// Weights, features and "public" data that are made of the clients' own records.
#include "federation/public_claims.h"

#include "../data/make_files.h"
#include "../models/temp_home.h"
#include "../support/expect_user_error.h"
#include "base/files.h"
#include "data/record_ops.h"
#include "models/features.h"
#include "models/pretrain.h"
#include "models/weights/weight_store.h"
#include "small_setup.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace sotto::federation {
namespace {

using models::dark_and_bright;
using models::write_dataset;

constexpr const char* kOwn = "the clients' own records";

data::Dataset two_domains() {
  data::Dataset dataset = dark_and_bright(40, 0);
  dataset.domain_names = {"north", "south"};
  dataset.train.domain = at::arange(40, at::kLong).remainder(2);
  return dataset;
}

class PublicClaims : public ::testing::Test {
 protected:
  static void pretrain(const data::DataOptions& data, const std::string& name, const std::string& start = "") {
    models::PretrainOptions options;
    options.name = name;
    options.model.name = "mlp";
    options.model.hidden = {4};
    options.model.weights = start;
    options.data = data;
    options.epochs = 1;
    models::pretrain(options, [](const models::EpochReport&) {});
  }

  static config::RunSpec spec_on(const data::DataOptions& data, const std::string& weights = "",
                                 const std::string& features = "") {
    config::RunSpec spec = config::parse_run_spec(
        "[federation]\nbatch = 4\n[model]\nname = \"mlp\"\nhidden = [4]\n[method]\nname = \"ldp-fedavg\"\n" +
            needed_options("ldp-fedavg") + privacy_terms("ldp-fedavg"),
        "test.toml", {});
    spec.data = data;
    spec.data.clients = 2;
    spec.data.classes = {"dark", "bright"};
    spec.data.features = features;
    spec.model.weights = weights;
    return spec;
  }

  static void check(const data::DataOptions& data, const std::string& weights, const std::string& features = "") {
    refuse_own_data_as_public(spec_on(data, weights, features));
  }

  const models::TempHome home_;
  const data::DataOptions clients_ = write_dataset(home_ / "shades.safetensors", dark_and_bright(40, 8));
  const data::DataOptions others_ = write_dataset(home_ / "others.safetensors", dark_and_bright(40, 8, 5));
};

TEST_F(PublicClaims, WeightsOfTheClientsOwnDatasetAreRefused) {
  pretrain(clients_, "own");
  pretrain(others_, "foreign");
  EXPECT_USER_ERROR(check(clients_, "own"), "model.weights: 'own' was pretrained on");
  EXPECT_USER_ERROR(check(clients_, "own"), kOwn);
  EXPECT_USER_ERROR(check(clients_, (models::pretrained_folder() / "own.pt").string()), kOwn);
  EXPECT_USER_ERROR(federation::Setup{spec_on(clients_, "own")}, kOwn);
  check(clients_, "foreign");
  check(others_, "own");
  const federation::Setup fine{spec_on(clients_, "foreign")};

  config::RunSpec in_the_clear = spec_on(clients_, "own");
  in_the_clear.privacy.reset();
  refuse_own_data_as_public(in_the_clear);
}

TEST_F(PublicClaims, WeightsRememberWhatTheyBeganWith) {
  pretrain(clients_, "own");
  pretrain(others_, "later", "own");
  EXPECT_USER_ERROR(check(clients_, "later"), kOwn);
  EXPECT_USER_ERROR(check(others_, "later"), kOwn);
}

TEST_F(PublicClaims, ACopyInAnotherOrderIsKnownByItsContent) {
  data::Dataset copy = dark_and_bright(40, 0);
  copy.train = data::select_records(copy.train, at::arange(39, -1, -1, at::kLong));
  copy.train.y = 1 - copy.train.y;
  pretrain(write_dataset(home_ / "copy.safetensors", copy), "copied");
  EXPECT_USER_ERROR(check(clients_, "copied"), "copy.safetensors, the clients' own records");
  data::DataOptions sample = clients_;
  sample.limit = 10;
  EXPECT_USER_ERROR(check(sample, "copied"), kOwn);
}

TEST_F(PublicClaims, OtherDomainsOfTheSameDatasetAreOtherRecords) {
  data::DataOptions data = write_dataset(home_ / "domains.safetensors", two_domains());
  data.domains = {"north"};
  pretrain(data, "north");
  EXPECT_USER_ERROR(check(data, "north"), "domain north of");
  data.domains = {"south"};
  check(data, "north");
  data.domains = {};
  EXPECT_USER_ERROR(check(data, "north"), kOwn);
}

TEST_F(PublicClaims, CardsWithoutAHashAreComparedByName) {
  pretrain(others_, "old");
  const fs::path card = models::pretrained_folder() / "old.json";
  nlohmann::json value = nlohmann::json::parse(read_file(card));
  EXPECT_EQ(value["origin"].size(), 1U);
  EXPECT_EQ(value["origin"][0]["sha256"].get<std::string>().size(), 64U);
  value.erase("origin");
  write_file_atomically(card, value.dump());
  EXPECT_USER_ERROR(check(clients_, "old"), "custom, the clients' own records");
  value["dataset"] = "mnist";
  write_file_atomically(card, value.dump());
  check(clients_, "old");
}

TEST_F(PublicClaims, FeaturesOfABackboneThatSawTheRecordsAreRefused) {
  pretrain(clients_, "own");
  pretrain(others_, "foreign");
  EXPECT_USER_ERROR(check(clients_, "", "own"), "data.features: 'own' was pretrained on");
  EXPECT_USER_ERROR(check(clients_, "", "foreign+own"), "data.features: 'own'");
  check(clients_, "", "foreign");

  const auto features_of = [&](const char* backbone) {
    data::DataOptions data = clients_;
    data.features = backbone;
    data::DataOptions by_path;
    by_path.name = "custom";
    by_path.path = models::load_features(data, 1).file.string();
    return by_path;
  };
  EXPECT_USER_ERROR(check(features_of("own"), ""), "data.path: the features in");
  check(features_of("foreign"), "");
}

// Datasets by name, since that is what method.public_data takes.
class NamedDatasets : public PublicClaims {
 protected:
  void add(const std::string& name, uint8_t shade) const {
    std::vector<uint8_t> pixels, labels;
    for (uint8_t i = 0; i < 20; ++i) {
      pixels.insert(pixels.end(), 16, static_cast<uint8_t>(i + shade));
      labels.push_back(i % 10);
    }
    for (const char* split : {"train", "t10k"}) {
      test::write_bytes(home_ / fmt::format("data/{}/{}-images-idx3-ubyte", name, split),
                        test::idx_bytes({20, 4, 4}, pixels));
      test::write_bytes(home_ / fmt::format("data/{}/{}-labels-idx1-ubyte", name, split),
                        test::idx_bytes({20}, labels));
    }
  }

  static config::RunSpec learning_from(const std::string& public_data) {
    return config::parse_run_spec(
        "[data]\nname = \"mnist\"\nclients = 2\n[method]\nname = \"fedproto\"\nencoder = \"public\"\npublic_data = \"" +
            public_data + "\"\n" + privacy_terms("fedproto"),
        "test.toml", {});
  }

  const test::Environment search_path_{"SOTTO_DATA", (home_ / "data").string()};
};

TEST_F(NamedDatasets, PublicDataIsNotTheClientsOwn) {
  add("mnist", 0);
  add("fashion-mnist", 100);
  EXPECT_USER_ERROR(refuse_own_data_as_public(learning_from("mnist")), "method.public_data: 'mnist' is mnist");
  refuse_own_data_as_public(learning_from("fashion-mnist"));
  add("fashion-mnist", 0);
  EXPECT_USER_ERROR(refuse_own_data_as_public(learning_from("fashion-mnist")), kOwn);
}

TEST_F(NamedDatasets, AFamilyHasTheRecordsOfItsMembers) {
  add("mnist", 0);
  data::DataOptions family;
  family.name = "digits";
  family.domains = {"mnist"};
  data::DataOptions mnist;
  mnist.name = "mnist";
  pretrain(mnist, "on-mnist");
  EXPECT_USER_ERROR(check(family, "on-mnist"), "pretrained on mnist");
}

TEST(Origin, NamesAndContentsTell) {
  using data::Origin;
  const auto share = [](const Origin& one, const Origin& other) { return data::common_part(one, other).has_value(); };
  EXPECT_TRUE(share({{.dataset = "pacs"}}, {{.dataset = "pacs", .domain = "art"}}));
  EXPECT_TRUE(share({{.dataset = "pacs", .domain = "art"}}, {{.dataset = "pacs"}}));
  EXPECT_FALSE(share({{.dataset = "pacs", .domain = "art"}}, {{.dataset = "pacs", .domain = "photo"}}));
  EXPECT_TRUE(share({{.dataset = "a", .content = "1"}}, {{.dataset = "b"}, {.dataset = "c", .content = "1"}}));
  EXPECT_FALSE(share({{.dataset = "a"}}, {{.dataset = "b"}})) << "nothing is known of either's content";
  EXPECT_FALSE(share({{.dataset = "/home/a.csv"}}, {{.dataset = "/home/b.csv"}}));
  const Origin origin{{.dataset = "pacs", .domain = "art", .content = "1"}};
  EXPECT_EQ(data::origin_from(data::to_json(origin)), origin);
}

TEST_F(PublicClaims, AxesOfTheClientsOwnRecordsAreNotPublic) {
  const models::TempHome home;
  const auto own = write_dataset(home / "own.safetensors", dark_and_bright(20, 0));
  const auto other = write_dataset(home / "other.safetensors", dark_and_bright(20, 0, 3));
  const auto copy = write_dataset(home / "copy.safetensors", dark_and_bright(20, 0));
  const auto laid_on = [&](const std::string& public_data) {
    config::RunSpec spec = spec_on(own, "", "hog");
    spec.data.project_on = public_data;
    return spec;
  };
  EXPECT_USER_ERROR(refuse_own_data_as_public(laid_on(own.path)), kOwn);
  EXPECT_USER_ERROR(refuse_own_data_as_public(laid_on(copy.path)), kOwn);
  EXPECT_NO_THROW(refuse_own_data_as_public(laid_on(other.path)));
  EXPECT_NO_THROW(refuse_own_data_as_public(laid_on("random")));
}

}  // namespace
}  // namespace sotto::federation
