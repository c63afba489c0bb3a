// Under add-remove a record may be missing, and those behind it move up: nothing of theirs may change.
#include "small_run.h"

#include <fmt/format.h>

namespace sotto::federation {
namespace {

constexpr int64_t kWidth = 96;  // wide enough for kernels to have several ways to add up
constexpr int64_t kClasses = 3;

data::Records records_of(int64_t count, uint64_t seed) {
  RandomStream stream(seed, "wide");
  data::Records records;
  records.x = at::empty({count, kWidth}).normal_(0.0, 1.0, stream.torch_generator());
  records.y = at::arange(count, at::kLong).remainder(kClasses);
  records.domain = at::zeros({count}, at::kLong);
  return records;
}

Setup wide_setup(const std::string& method, int64_t records) {
  auto data = std::make_shared<models::TaskData>();
  data->dataset.name = "wide";
  data->dataset.kind = data::Kind::kFeatures;
  data->dataset.class_names = {"a", "b", "c"};
  data->dataset.domain_names = {"only"};
  data->dataset.train = records_of(records, 1);
  data->dataset.test = records_of(30, 2);
  data->task = {{kWidth}, kClasses};
  // Next to no noise, so that the grid is fine enough to show a last bit.
  const std::string toml = fmt::format(
      "rounds = 1\n[data]\nclients = 2\n[federation]\nbatch = 16\n[privacy]\nepsilon = 100000\ndelta = 1e-4\nadjacency "
      "= \"add-remove\"\nrecords = 100\n[method]\n{}\nwidth = 32\nhead = [8]\n[model]\nname = \"mlp\"\nhidden = [64]\n",
      method);
  return {config::parse_run_spec(toml, "test.toml", {}), std::move(data)};
}

NamedTensors upload_of(const Setup& setup, data::Shard shard, int64_t missing) {
  shard.train = shard.train.narrow(0, missing, shard.train.size(0) - missing);
  const auto client = setup.method().make_client(setup.client_context());
  const methods::Broadcast broadcast = setup.method().make_server(setup.public_context())->open();
  privacy::PrivateState state;
  privacy::Ledger ledger;
  const auto result =
      client->step(broadcast, shard, state,
                   {.seed = 1, .release = {.ledger = ledger, .round = 1, .client = 0}, .own = setup.facts_of(0)});
  return clone(result.upload->values());
}

// The class's part of every tensor.
NamedTensors of_class(int64_t c, const NamedTensors& upload) {
  NamedTensors part;
  for (const auto& [name, value] : upload) {
    part.push_back({name, value.view({kClasses, value.size(0) / kClasses, -1})[c]});
  }
  return part;
}

void expect_others_unchanged(const Setup& setup, int64_t missing) {
  const data::Shard shard = setup.partition().shard(0);
  const at::Tensor gone = setup.dataset().train.y.index_select(0, shard.train.narrow(0, 0, missing));
  const NamedTensors all = upload_of(setup, shard, 0), fewer = upload_of(setup, shard, missing);
  ASSERT_FALSE(fewer[0].value.equal(all[0].value)) << "the record is seen";
  for (int64_t c = 0; c < kClasses; ++c) {
    if (gone.eq(c).any().item<bool>()) continue;
    const NamedTensors before = of_class(c, all), after = of_class(c, fewer);
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_TRUE(after[i].value.equal(before[i].value))
          << setup.spec().method << ": " << all[i].name << " of class " << c << ", " << shard.size() << " records";
    }
  }
}

TEST(MissingRecord, LeavesTheSumsOfOtherClassesAsTheyWereToTheLastBit) {
  for (const char* method : {"name = \"fedproto\"", "name = \"fedplvm\"\nanchors = 4"}) {
    for (int64_t records = 10; records <= 80; records += 2) {
      const auto setup = wide_setup(method, records);
      for (int64_t missing = 1; missing <= 3; ++missing) expect_others_unchanged(setup, missing);
    }
  }
}

}  // namespace
}  // namespace sotto::federation
