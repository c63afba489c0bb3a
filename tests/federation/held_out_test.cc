// Who is held out, where one record may be another: a proof about one record needs everybody else to keep their side.
#include "../data/make_files.h"
#include "../support/expect_user_error.h"
#include "../support/temp_folder.h"
#include "small_run.h"

#include <set>

namespace sotto::federation {
namespace {

constexpr int kRecords = 60;

class HeldOut : public ::testing::Test {
 protected:
  // Record `changed` has the other class.
  federation::Setup setup(int changed, const std::string& adjacency, const std::string& data = "") const {
    std::string rows = "a,label\n";
    for (int i = 0; i < kRecords; ++i) rows += fmt::format("{},{}\n", i, i == changed ? 1 : i * 2 / kRecords);
    test::write_bytes(folder_ / "p.csv", rows);
    const std::string toml =
        "rounds = 1\n[federation]\nbatch = 8\n[method]\nname = \"ldp-fedavg\"\n[model]\nname = \"logistic\"\n"
        "[privacy]\nepsilon = 4\ndelta = 1e-5\nadjacency = \"" +
        adjacency + "\"\n" + (adjacency == "add-remove" ? "records = 30\n" : "") +
        "[data]\nname = \"custom\"\nclients = 2\npath = \"" + (folder_ / "p.csv").string() +
        "\"\nschema = {columns = [{name = \"a\", kind = \"number\", range = [0, 60]}, "
        "{name = \"label\", kind = \"label\", values = [\"0\", \"1\"]}]}\n" +
        data;
    return federation::Setup(config::parse_run_spec(toml, "test.toml", {}));
  }

  static std::set<int64_t> trained(const federation::Setup& setup) {
    std::set<int64_t> rows;
    for (int64_t client = 0; client < 2; ++client) {
      const at::Tensor train = setup.partition().shard(client).train;
      rows.insert(train.data_ptr<int64_t>(), train.data_ptr<int64_t>() + train.size(0));
    }
    return rows;
  }

  const test::TempFolder folder_;
};

TEST_F(HeldOut, DoesNotDependOnLabels) {
  for (const char* data : {"test_fraction = 0.25\n", "validation = 0.25\n", "train_fraction = 0.5\n"}) {
    for (const char* adjacency : {"replace", "zero-out"}) {
      const std::set<int64_t> before = trained(setup(-1, adjacency, data));
      EXPECT_LT(before.size(), static_cast<size_t>(kRecords)) << data;
      for (const int changed : {0, 7, 29}) EXPECT_EQ(trained(setup(changed, adjacency, data)), before) << data;
    }
  }
}

TEST_F(HeldOut, IsRefusedWherePlacesMove) {
  EXPECT_USER_ERROR(setup(-1, "add-remove"), "under \"add-remove\" who is held out");
  EXPECT_USER_ERROR(setup(-1, "add-remove", "test_fraction = 0\nvalidation = 0.1\n"), "who is held out");
  EXPECT_EQ(trained(setup(-1, "add-remove", "test_fraction = 0\n")).size(), static_cast<size_t>(kRecords));
}

}  // namespace
}  // namespace sotto::federation
