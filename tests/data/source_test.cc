// Finding, caching and loading datasets by name and path.
#include "data/source.h"

#include "../support/expect_user_error.h"
#include "../support/temp_folder.h"
#include "base/files.h"
#include "data/domains.h"
#include "data/readers/feature_file.h"
#include "data/search.h"
#include "io/safetensors.h"
#include "make_files.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

namespace sotto::data {
namespace {

using namespace sotto::test;
using Names = std::vector<std::string>;

// A home and a search path of the test's own.
class Source : public testing::Test {
 protected:
  TempFolder home_;
  TempFolder data_;
  Environment home_variable_{"SOTTO_HOME", home_.path().string()};
  Environment data_variable_{"SOTTO_DATA", data_.path().string()};

  void add_mnist(int count, const std::string& name = "mnist") {
    std::vector<uint8_t> pixels;
    std::vector<uint8_t> labels;
    for (int i = 0; i < count; ++i) {
      pixels.insert(pixels.end(), 16, static_cast<uint8_t>(i));
      labels.push_back(static_cast<uint8_t>(i % 10));
    }
    const auto size = static_cast<uint32_t>(count);
    write_bytes(data_ / (name + "/train-images-idx3-ubyte"), idx_bytes({size, 4, 4}, pixels));
    write_bytes(data_ / (name + "/train-labels-idx1-ubyte"), idx_bytes({size}, labels));
    write_bytes(data_ / (name + "/t10k-images-idx3-ubyte"), idx_bytes({size, 4, 4}, pixels));
    write_bytes(data_ / (name + "/t10k-labels-idx1-ubyte"), idx_bytes({size}, labels));
  }

  void add_usps() {
    std::map<std::string, std::string> files{{"usps/train.csv", "image_name,label\n"}};
    for (int i = 0; i < 10; ++i) {
      files["usps/train.csv"] += fmt::format("{}.png,{}\n", i, i);
      files[fmt::format("usps/train/{}.png", i)] = plain_png(6, 6, {static_cast<uint8_t>(i)});
    }
    write_bytes(data_ / "digits/usps.tar.gz", tar_gz(files));
  }

  static data::DataOptions named(const std::string& name) {
    data::DataOptions options;
    options.name = name;
    return options;
  }
};

TEST_F(Source, FindsFoldersTarballsAndFoldersOfOneTarball) {
  add_mnist(10);
  add_usps();
  write_bytes(data_ / "tiny-imagenet-32/some-name.tar.gz", "x");
  std::filesystem::create_directories(data_ / "svhn");
  EXPECT_EQ(find_dataset("mnist"), data_ / "mnist");
  EXPECT_EQ(find_dataset("usps"), data_ / "digits/usps.tar.gz");
  EXPECT_EQ(find_dataset("tiny-imagenet-32"), data_ / "tiny-imagenet-32/some-name.tar.gz");
  EXPECT_EQ(find_dataset("svhn"), std::nullopt);
  write_bytes(home_ / "data/svhn/train.csv", "x");
  EXPECT_EQ(find_dataset("svhn"), home_ / "data/svhn");
}

TEST_F(Source, Cifar100IsReadFromFoldersOfPicturesToo) {
  for (const char* file : {"train/apple/0001.png", "train/apple/0002.png", "train/zebra/0001.png",
                           "test/apple/0001.png", "test/zebra/0001.png"}) {
    write_bytes(data_ / "cifar100" / file, plain_png(4, 4, {1, 2, 3}));
  }
  const Dataset dataset = load_dataset(named("cifar100"), 1);
  EXPECT_EQ(dataset.class_names, Names({"apple", "zebra"}));
  EXPECT_EQ(dataset.train.size(), 3);
  EXPECT_EQ(dataset.test.size(), 2);
  EXPECT_TRUE(at::equal(dataset.train.y, at::tensor({0, 0, 1}, at::kLong)));
  EXPECT_EQ(dataset.train.x.sizes(), at::IntArrayRef({3, 3, 4, 4}));
}

TEST_F(Source, MissingAndMisspeltDatasetsSayWhatToDo) {
  EXPECT_USER_ERROR(load_dataset(named("mnist"), 1), "sotto data install mnist");
  EXPECT_USER_ERROR(load_dataset(named("pacs"), 1), "put domain/class/*.jpg or .png into " + home_.path().string());
  EXPECT_USER_ERROR(load_dataset(named("fashon-mnist"), 1), "did you mean 'fashion-mnist'");
  EXPECT_USER_ERROR(load_dataset(named("custom"), 1), "data.path");
}

TEST_F(Source, ListsEveryDatasetAndWhereItIs) {
  add_mnist(10);
  const auto infos = list_datasets();
  const auto find = [&](const std::string& name) {
    return std::find_if(infos.begin(), infos.end(), [&](const auto& info) { return info.name == name; });
  };
  ASSERT_NE(find("mnist"), infos.end());
  EXPECT_EQ(find("mnist")->location, data_ / "mnist");
  EXPECT_TRUE(find("cifar10")->installable);
  EXPECT_FALSE(find("cifar10")->location);
  for (const char* name :
       {"fashion-mnist", "usps", "svhn", "cifar100", "femnist", "heart-disease", "mnistm", "tiny-imagenet-32",
        "office-caltech10", "pacs", "ag-news", "optdigits", "synthetic-digits", "digits"}) {
    EXPECT_NE(find(name), infos.end()) << name;
  }
}

TEST_F(Source, ImageSizeAndLimit) {
  add_mnist(50);
  auto options = named("mnist");
  options.image_size = 7;
  options.limit = 20;
  const Dataset dataset = load_dataset(options, 1);
  EXPECT_EQ(dataset.train.x.sizes(), (at::IntArrayRef{20, 1, 7, 7}));
  EXPECT_EQ(dataset.test.size(), 50);
  EXPECT_TRUE(at::equal(load_dataset(options, 1).train.x, dataset.train.x));
  EXPECT_FALSE(at::equal(load_dataset(options, 2).train.x, dataset.train.x));
  options.image_size = -1;
  EXPECT_USER_ERROR(load_dataset(options, 1), "data.image_size");
  options = named("mnist");
  options.limit = -5;
  EXPECT_USER_ERROR(load_dataset(options, 1), "data.limit");
}

TEST_F(Source, TransformsMakeDomains) {
  add_mnist(50);
  auto options = named("mnist");
  options.domains = {"plain", "inverted"};
  const Dataset dataset = load_dataset(options, 1);
  EXPECT_EQ(dataset.domain_names, options.domains);
  EXPECT_EQ(dataset.train.size(), 50);
  EXPECT_EQ((dataset.train.domain == 0).sum().item<int64_t>(), 25);
  for (int64_t i = 0; i < 50; ++i) {
    const bool inverted = dataset.train.domain[i].item<int64_t>() == 1;
    EXPECT_EQ(dataset.train.x[i][0][0][0].item<int64_t>(), inverted ? 255 - i : i);
  }
  EXPECT_EQ((dataset.test.domain == 1).sum().item<int64_t>(), 25);
  EXPECT_FALSE(at::equal(load_dataset(options, 2).train.domain, dataset.train.domain));
  options.domains = {"plain", "sideways"};
  EXPECT_USER_ERROR(load_dataset(options, 1), "'sideways' is no domain");
  options.domains = {"plain", "plain"};
  EXPECT_USER_ERROR(load_dataset(options, 1), "twice");
}

TEST_F(Source, DigitsAreJoinedInOneShape) {
  add_mnist(20);
  add_usps();
  auto options = named("digits");
  options.domains = {"usps", "mnist"};
  const Dataset dataset = load_dataset(options, 1);
  EXPECT_EQ(dataset.domain_names, options.domains);
  EXPECT_EQ(dataset.train.x.sizes().slice(2), (at::IntArrayRef{32, 32}));
  EXPECT_EQ((dataset.train.domain == 0).sum().item<int64_t>(), 10);
  EXPECT_EQ((dataset.train.domain == 1).sum().item<int64_t>(), 20);
  options.domains = {"usps", "letters"};
  EXPECT_USER_ERROR(load_dataset(options, 1), "'letters' is no domain of digits");
}

TEST_F(Source, SelectsAndOrdersDomains) {
  for (const char* domain : {"a", "b", "c"}) {
    const auto shade = static_cast<uint8_t>(domain[0]);
    write_bytes(data_ / fmt::format("office-caltech10/{}/mug/1.png", domain), plain_png(4, 4, {shade}));
    write_bytes(data_ / fmt::format("office-caltech10/{}/bike/1.png", domain), plain_png(4, 4, {shade}));
  }
  auto options = named("office-caltech10");
  options.domains = {"c", "a"};
  const Dataset dataset = load_dataset(options, 1);
  EXPECT_EQ(dataset.domain_names, (Names{"c", "a"}));
  EXPECT_EQ(dataset.train.size(), 4);
  for (int64_t i = 0; i < 4; ++i) {
    const char domain = dataset.domain_names[static_cast<size_t>(dataset.train.domain[i].item<int64_t>())][0];
    EXPECT_EQ(dataset.train.x[i][0][0][0].item<int>(), domain);
  }
  options.domains = {"d"};
  EXPECT_USER_ERROR(load_dataset(options, 1), "'d' is no domain of office-caltech10");
}

TEST_F(Source, DecodesOnceAndNoticesChanges) {
  add_usps();
  const Dataset first = load_dataset(named("usps"), 1);
  std::filesystem::path cache;
  for (const auto& entry : std::filesystem::directory_iterator(home_ / "cache")) cache = entry.path();
  ASSERT_TRUE(std::filesystem::exists(cache));

  const auto written = std::filesystem::last_write_time(cache);
  EXPECT_TRUE(at::equal(load_dataset(named("usps"), 1).train.x, first.train.x));
  EXPECT_EQ(std::filesystem::last_write_time(cache), written);

  write_bytes(cache, "corrupt");
  EXPECT_TRUE(at::equal(load_dataset(named("usps"), 1).train.x, first.train.x));
  EXPECT_GT(std::filesystem::file_size(cache), 100u);

  write_bytes(data_ / "digits/usps.tar.gz",
              tar_gz({{"usps/train.csv", "image_name,label\n0.png,0\n"}, {"usps/train/0.png", plain_png(6, 6, {9})}}));
  EXPECT_EQ(load_dataset(named("usps"), 1).train.size(), 1);
}

TEST_F(Source, AnUnwritableCacheIsOnlyAWarning) {
  add_usps();
  write_bytes(home_ / "cache", "a file where the folder should be");
  testing::internal::CaptureStderr();
  EXPECT_EQ(load_dataset(named("usps"), 1).train.size(), 10);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("decoded again next time"), std::string::npos);
}

TEST_F(Source, CustomDataIsRecognised) {
  const auto load = [&](const std::string& path) {
    auto options = named("custom");
    options.path = (data_ / path).string();
    return load_dataset(options, 1);
  };
  add_mnist(10, "mine");
  EXPECT_EQ(load("mine").train.size(), 10);
  add_usps();
  EXPECT_EQ(load("digits/usps.tar.gz").train.size(), 10);
  write_bytes(data_ / "table.csv", "a,label\n1,x\n2,y\n");
  EXPECT_EQ(load("table.csv").kind, Kind::kFeatures);
  write_bytes(data_ / "text.csv", "text,label\nhello,x\nbye,y\n");
  EXPECT_EQ(load("text.csv").kind, Kind::kText);
  write_bytes(data_ / "text.schema.json",
              R"({"columns": [{"name": "text", "kind": "category", "values": ["hello", "bye"]},
                              {"name": "label", "kind": "label", "values": ["x", "y"]}]})");
  EXPECT_EQ(load("text.csv").kind, Kind::kFeatures) << "a schema makes it a table, whatever its records look like";
  write_bytes(data_ / "folder/train.csv", "a,label\n1,x\n2,y\n");
  EXPECT_EQ(load("folder").kind, Kind::kFeatures);
  write_bytes(data_ / "pictures/cat/1.png", plain_png(4, 4, {1}));
  EXPECT_EQ(load("pictures").kind, Kind::kImages);
  write_bytes(data_ / "other/notes.txt", "x");
  EXPECT_USER_ERROR(load("other"), "no known format");
  EXPECT_USER_ERROR(load("other/notes.txt"), "no known format");
  EXPECT_USER_ERROR(load("nowhere"), "there is no such file or folder");
}

TEST_F(Source, OptionsThatDoNotFitTheDataAreRefused) {
  write_bytes(data_ / "table.csv", "a,label\n1,x\n2,y\n");
  auto options = named("custom");
  options.path = (data_ / "table.csv").string();
  options.image_size = 32;
  EXPECT_USER_ERROR(load_dataset(options, 1), "does not consist of images");
  options.image_size = 0;
  options.domains = {"plain"};
  EXPECT_USER_ERROR(load_dataset(options, 1), "transforms cannot make more");
  options = named("mnist");
  options.path = "x";
  EXPECT_USER_ERROR(load_dataset(options, 1), "data.path is only used");
}

TEST_F(Source, FeatureFilesRoundTrip) {
  Dataset dataset;
  dataset.name = "made";
  dataset.kind = Kind::kFeatures;
  dataset.class_names = {"a", "b"};
  dataset.domain_names = {"x", "y"};
  dataset.train = {
      at::rand({5, 3}), at::tensor({0, 1, 0, 1, 1}, at::kLong), at::tensor({0, 0, 1, 1, 0}, at::kLong), {}};
  dataset.test = {at::rand({2, 3}), at::tensor({0, 1}, at::kLong), at::tensor({1, 1}, at::kLong), {}};
  write_feature_file(data_ / "f.safetensors", dataset);
  auto options = named("custom");
  options.path = (data_ / "f.safetensors").string();
  const Dataset read = load_dataset(options, 1);
  EXPECT_EQ(read.kind, Kind::kFeatures);
  EXPECT_EQ(read.class_names, dataset.class_names);
  EXPECT_EQ(read.domain_names, dataset.domain_names);
  EXPECT_TRUE(at::equal(read.train.x, dataset.train.x));
  EXPECT_TRUE(at::equal(read.test.domain, dataset.test.domain));
}

TEST_F(Source, FeatureFilesMayBeMinimalButNotWrong) {
  const auto path = data_ / "f.safetensors";
  const auto write = [&](NamedTensors tensors, std::map<std::string, std::string> metadata = {}) {
    io::write_safetensors(path, {std::move(tensors), std::move(metadata)});
  };
  const at::Tensor y = at::tensor({0, 2}, at::kInt);
  write({{"x", at::rand({2, 3}).to(at::kHalf)}, {"y", y}});
  const Dataset minimal = read_feature_file(path, "made");
  EXPECT_EQ(minimal.classes(), 3);
  EXPECT_EQ(minimal.domains(), 1);
  EXPECT_EQ(minimal.train.x.scalar_type(), at::kFloat);
  write({{"x", at::rand({2, 3})}});
  EXPECT_USER_ERROR(read_feature_file(path, "made"), "x needs y");
  write({{"x", at::rand({2})}, {"y", y}});
  EXPECT_USER_ERROR(read_feature_file(path, "made"), "x must be");
  write({{"x", at::rand({3, 3})}, {"y", y}});
  EXPECT_USER_ERROR(read_feature_file(path, "made"), "3 records but 2 labels");
  write({{"x", at::rand({2, 3})}, {"y", at::rand({2})}});
  EXPECT_USER_ERROR(read_feature_file(path, "made"), "y must be int64");
  write({{"x", at::rand({2, 3})}, {"y", y}}, {{"class_names", "[1"}});
  EXPECT_USER_ERROR(read_feature_file(path, "made"), "class_names");
  write({{"x", at::rand({2, 3})}, {"y", at::full({2}, int64_t{1} << 40, at::kLong)}}, {});
  EXPECT_USER_ERROR(read_feature_file(path, "made"), "is the number of a class or domain");
  write({{"x", at::rand({2, 3})}, {"y", y}}, {{"class_names", "[\"a\",\"b\"]"}});
  EXPECT_USER_ERROR(read_feature_file(path, "made"), "label 2 is out of range");
  write({{"x", at::full({2, 3}, NAN)}, {"y", y}});
  EXPECT_USER_ERROR(read_feature_file(path, "made"), "not a finite number");
}

TEST(JoinAsDomains, GreyAndColourMeetInRgb) {
  const auto member = [](const std::string& name, int64_t channels, int64_t size) {
    Dataset dataset;
    dataset.name = name;
    dataset.class_names = {"0", "1"};
    dataset.domain_names = {name};
    dataset.train = {at::full({2, channels, size, size}, size, at::kByte),
                     at::tensor({0, 1}, at::kLong),
                     at::zeros({2}, at::kLong),
                     {}};
    return dataset;
  };
  const Dataset joined = join_as_domains("family", {member("grey", 1, 8), member("colour", 3, 16)}, 12);
  EXPECT_EQ(joined.train.x.sizes(), (at::IntArrayRef{4, 3, 12, 12}));
  EXPECT_EQ(joined.domain_names, (Names{"grey", "colour"}));
  EXPECT_TRUE((joined.train.x[0] == 8).all().item<bool>());
  EXPECT_TRUE((joined.train.x[3] == 16).all().item<bool>());
  EXPECT_EQ(joined.test.size(), 0);
}

TEST(InstalledDatasets, FashionMnistLoads) {
  if (!find_dataset("fashion-mnist"))
    GTEST_SKIP() << "fashion-mnist is not installed (sotto data install fashion-mnist)";
  const Dataset dataset = load_dataset({}, 1);
  EXPECT_EQ(dataset.train.size(), 60000);
  EXPECT_EQ(dataset.test.size(), 10000);
  EXPECT_EQ(dataset.class_names[9], "ankle boot");
  EXPECT_TRUE((at::bincount(dataset.train.y) == 6000).all().item<bool>());
}

}  // namespace
}  // namespace sotto::data
