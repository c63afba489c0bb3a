// Classes that are found in the records shape all that is sent: private runs on data of one's own declare them.
#include "data/declared_classes.h"

#include "../support/expect_user_error.h"
#include "../support/temp_folder.h"
#include "data/readers/feature_file.h"
#include "small_run.h"

namespace sotto::federation {
namespace {

class DeclaredClasses : public ::testing::Test {
 protected:
  DeclaredClasses() {
    data::Dataset dataset;
    dataset.name = "made";
    dataset.kind = data::Kind::kFeatures;
    dataset.class_names = {"cat", "dog"};
    dataset.domain_names = {"all"};
    dataset.train = {
        .x = at::rand({40, 3}), .y = at::arange(40).remainder(2), .domain = at::zeros({40}, at::kLong), .texts = {}};
    data::write_feature_file(file_, dataset, {});
  }

  federation::Setup setup(const std::string& data, const std::string& privacy = "adjacency = \"zero-out\"\n") const {
    return federation::Setup(config::parse_run_spec(
        "rounds = 1\n[federation]\nbatch = 8\n[model]\nname = \"logistic\"\n[method]\nname = \"" +
            std::string(privacy.empty() ? "fedavg\"\n" : "ldp-fedavg\"\n[privacy]\nepsilon = 4\ndelta = 1e-5\n") +
            privacy + "[data]\nname = \"custom\"\nclients = 2\npath = \"" + file_.string() + "\"\n" + data,
        "test.toml", {}));
  }

  const test::TempFolder folder_;
  const std::filesystem::path file_ = folder_ / "made.safetensors";
};

TEST_F(DeclaredClasses, APrivateRunNeedsThem) {
  EXPECT_USER_ERROR(setup(""), "data.classes = [\"cat\",\"dog\"]");
  EXPECT_EQ(setup("", "").published().facts().class_names.size(), 2U) << "without [privacy] nothing is promised";
  EXPECT_EQ(setup("", "adjacency = \"replace-same-label\"\n").published().facts().class_names.size(), 2U)
      << "they cannot change";
}

TEST_F(DeclaredClasses, MayHoldMoreThanTheRecordsInAnotherOrder) {
  const federation::Setup found = setup("", ""), declared = setup("classes = [\"dog\", \"bird\", \"cat\"]\n");
  EXPECT_EQ(declared.published().facts().class_names, (std::vector<std::string>{"dog", "bird", "cat"}));
  EXPECT_EQ(declared.published().facts().task.classes, 3);
  const at::Tensor names = at::tensor({2, 0}, at::kLong);  // of cat and dog
  EXPECT_TRUE(at::equal(declared.dataset().train.y, names.index_select(0, found.dataset().train.y)));
}

TEST_F(DeclaredClasses, MustHoldThoseOfTheRecords) {
  EXPECT_USER_ERROR(setup("classes = [\"cat\"]\n"), "a class 'dog', which is not among those declared: cat");
  EXPECT_USER_ERROR(setup("classes = [\"cat\", \"cat\"]\n"), "names a class twice");
  EXPECT_USER_ERROR(setup("classes = \"many\"\n"), "must be a list of names");
  EXPECT_EQ(data::declaration_of({"0", "1", "2"}), "data.classes = 3");
}

}  // namespace
}  // namespace sotto::federation
