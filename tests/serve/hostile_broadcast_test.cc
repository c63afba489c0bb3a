// Broadcasts of a server that nobody trusts: what becomes of them must depend on no record.
#include "../federation/small_run.h"
#include "../support/expect_user_error.h"
#include "at_home.h"

#include <gtest/gtest.h>

#include <limits>

namespace sotto::serve {
namespace {

using methods::Broadcast;

Broadcast opening(const federation::Setup& setup) {
  Broadcast first = setup.method().make_server(setup.public_context())->open();
  first.values = clone(first.values);
  return first;
}

// With what the server makes of two rounds, for those that open with nothing.
Broadcast honest(const federation::Setup& setup) {
  Broadcast broadcast = opening(setup);
  if (!broadcast.values.empty() || setup.spec().method == "local-only") return broadcast;
  privacy::Ledger ledger;
  return {1, federation::run(setup, ledger).broadcast};
}

struct Twist {
  std::string what;
  NamedTensors values;
};

// Each wrong in one way.
std::vector<Twist> twisted(const NamedTensors& values) {
  std::vector<Twist> twists;
  const auto with = [&](const std::string& what, const std::function<void(NamedTensors&)>& change) {
    twists.push_back({what, clone(values)});
    change(twists.back().values);
  };
  with("one more", [](NamedTensors& all) { all.push_back({"anchors", at::ones({1, 1, 1})}); });
  for (size_t i = 0; i < values.size(); ++i) {
    const auto other = [&](const std::string& what, const at::Tensor& value) {
      with(values[i].name + " " + what, [&](NamedTensors& all) { all[i].value = value; });
    };
    const at::Tensor& good = values[i].value;
    // Without anchors everybody takes the public ones.
    if (values[i].name != "anchors") {
      with(values[i].name + " is not there",
           [&](NamedTensors& all) { all.erase(all.begin() + static_cast<int64_t>(i)); });
    }
    other("is of another kind", good.to(good.scalar_type() == at::kDouble ? at::kFloat : at::kDouble));
    other("has one dimension more", good.unsqueeze(0));
    if (good.is_floating_point()) other("is infinite", at::full_like(good, std::numeric_limits<double>::infinity()));
    if (good.scalar_type() == at::kLong) other("names a class that there is not", good + 3);
    for (int64_t d = 0; d < good.dim(); ++d) {
      other(fmt::format("is longer along {}", d), at::cat({good, good.narrow(d, 0, 1)}, d));
      if (good.size(d) > 1) other(fmt::format("is shorter along {}", d), good.narrow(d, 1, good.size(d) - 1));
    }
  }
  return twists;
}

class HostileBroadcast : public ::testing::TestWithParam<std::string> {};

TEST_P(HostileBroadcast, IsRefusedBeforeARecordIsTouched) {
  const federation::Setup setup = federation::small_setup(config(GetParam()));
  const federation::FederationPlan plan = plan_of(setup);
  const TempFolder folder;
  HomeOf home(folder.path() / "home", setup, plan, 0);
  const Broadcast good = honest(setup);
  for (const Twist& bad : twisted(good.values)) {
    EXPECT_THROW(home.member().work({good.round, clone(bad.values)}), member::NotAllowed) << bad.what;
    EXPECT_THROW(home.member().evaluate({good.round, clone(bad.values)}), member::NotAllowed) << bad.what;
  }
  EXPECT_EQ(home.home().ledger().rows(), 0);
  EXPECT_EQ(home.member().last_round(), 0);
}

INSTANTIATE_TEST_SUITE_P(Catalogue, HostileBroadcast, ::testing::ValuesIn(methods::method_names()),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Tensors that only some options bring along.
TEST(HonestBroadcasts, FitWhateverTheOptions) {
  const std::pair<const char*, const char*> cases[] = {{"fedproto", "centre = true\n"},
                                                       {"fedplvm", "centre = true\nanchors = 3\n"},
                                                       {"mpft", "release = \"once\"\n"},
                                                       {"dp-fedavg", "clipping = \"adaptive\"\n"},
                                                       {"ldp-fedavg", "clipping = \"adaptive\"\n"}};
  for (const auto& [method, options] : cases) {
    const std::string terms = federation::privacy_terms(method);
    std::string toml = config(method, 3);
    toml.insert(toml.find(terms), options);
    const federation::Setup setup = federation::small_setup(toml);
    privacy::Ledger ledger;
    const Broadcast last{3, federation::run(setup, ledger).broadcast};
    const auto misfit = privacy::misfit(
        last.values,
        setup.method().broadcast_shape(setup.public_context(), privacy::shapes_of(opening(setup).values), last));
    EXPECT_FALSE(misfit) << method << ": " << *misfit;
  }
}

// A home that holds records of the last class, and one that does not.
class TwoHomes {
 public:
  explicit TwoHomes(const federation::Setup& setup)
      : setup_(setup),
        without_(setup.with_records(without_the_last_class(setup.dataset().train))),
        plan_(plan_of(setup)),
        telling_(folder_.path() / "telling", setup_, plan_, 0),
        other_(folder_.path() / "other", without_, plan_, 0) {}

  HomeOf& telling() { return telling_; }
  HomeOf& other() { return other_; }

 private:
  static data::Records without_the_last_class(data::Records records) {
    records.y = records.y.clamp_max(1);
    return records;
  }

  TempFolder folder_;
  federation::Setup setup_, without_;
  federation::FederationPlan plan_;
  HomeOf telling_, other_;
};

// Which was a free and certain answer to "have you such a record?": one home threw, the other sent its upload.
TEST(HostileBroadcasts, TooFewClassesTellNobodyWhoHoldsTheLast) {
  const federation::Setup setup = federation::small_setup(config("dp-prototypes"));
  TwoHomes homes(setup);
  Broadcast bad = opening(setup);
  for (NamedTensor& tensor : bad.values) {
    if (tensor.name == "prototypes.centres") tensor.value = tensor.value.narrow(0, 0, 2);
  }
  EXPECT_USER_ERROR(homes.telling().member().work(bad), "none of this method's");
  EXPECT_USER_ERROR(homes.other().member().work(bad), "none of this method's");
}

// A method that fails after its release where there is a record of the last class.
class Failing : public methods::ClientMethod {
 public:
  Failing(const methods::ClientContext& context, std::unique_ptr<methods::ClientMethod> method)
      : records_(context.records), method_(std::move(method)) {}

  methods::StepResult step(const Broadcast& broadcast, const data::Shard& shard, privacy::PrivateState& state,
                           const methods::StepContext& context) override {
    methods::StepResult result = method_->step(broadcast, shard, state, context);
    if (records_.y.max().item<int64_t>() == 2) fail_user("a record of the last class");
    return result;
  }
  void select(const Broadcast& broadcast, const privacy::PrivateState& state) override {
    method_->select(broadcast, state);
  }
  at::Tensor predict(const at::Tensor& x) override { return method_->predict(x); }
  at::Tensor features(const at::Tensor& x) override { return method_->features(x); }
  NamedTensors selected_weights() const override { return method_->selected_weights(); }

 private:
  const data::Records& records_;
  std::unique_ptr<methods::ClientMethod> method_;
};

TEST(HostileBroadcasts, AStepThatFailsIsPaidForAndNeverMadeAgain) {
  methods::MethodEntry entry = methods::find_method("ldp-fedavg");
  entry.name = "failing";
  entry.make_client = [make = entry.make_client](const methods::ClientContext& context) {
    return std::make_unique<Failing>(context, make(context));
  };
  methods::add_method(entry);
  const federation::Setup setup = federation::small_setup(config("failing"));
  TwoHomes homes(setup);
  Broadcast broadcast = opening(setup);
  EXPECT_TRUE(homes.other().member().work(broadcast).upload);
  member::Member& member = homes.telling().member();
  const member::Outcome outcome = member.work(broadcast);
  EXPECT_FALSE(outcome.upload);
  EXPECT_FALSE(outcome.skips) << "it is silent, as whose training diverged";
  EXPECT_EQ(outcome.why, "a record of the last class");
  EXPECT_EQ(homes.telling().home().ledger().rows(), 1);
  EXPECT_EQ(member.last_round(), 1);
  EXPECT_EQ(member.participations(), 1);
  EXPECT_EQ(member.spent_epsilon(), homes.other().member().spent_epsilon());
  homes.telling().open();
  EXPECT_FALSE(homes.telling().member().work(broadcast).upload) << "the same round is not worked on again";
  EXPECT_EQ(homes.telling().home().ledger().rows(), 1);
}

}  // namespace
}  // namespace sotto::serve
