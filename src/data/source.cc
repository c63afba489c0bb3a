#include "data/source.h"

#include "base/error.h"
#include "base/log.h"
#include "base/random.h"
#include "base/text.h"
#include "data/cache.h"
#include "data/catalogue.h"
#include "data/custom.h"
#include "data/domains.h"
#include "data/record_ops.h"
#include "data/search.h"
#include "data/synthetic_digits.h"
#include "io/images/resample.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace sotto::data {
namespace {

constexpr const char* kSynthetic = "synthetic-digits";
constexpr const char* kDigits = "digits";
constexpr const char* kCustom = "custom";
constexpr int64_t kSyntheticTrain = 10000;
constexpr int64_t kSyntheticTest = 2000;
constexpr uint64_t kSyntheticSeed = 1;  // a dataset is the same in every run, whatever the run's seed
constexpr int64_t kDigitsSize = 32;
constexpr int64_t kMaxImageSize = 1024;

const std::vector<std::string> kDigitsMembers{"mnist", "usps", "svhn", "mnistm"};

std::vector<std::string> known_names() {
  std::vector<std::string> names{kSynthetic, kDigits, kCustom};
  for (const auto& entry : catalogue()) names.push_back(entry.name);
  return names;
}

Dataset load_entry(const CatalogueEntry& entry, int64_t image_size) {
  const auto path = find_dataset(entry.name);
  if (!path) fail_user("the dataset {} is not here: {}", entry.name, how_to_get(entry));
  if (!entry.needs_decoding) return entry.read(*path, image_size);
  return cached_decoding(entry.name, *path, image_size, [&] { return entry.read(*path, image_size); });
}

Dataset load_synthetic() {
  const std::string stamp = fmt::format("{} + {}, seed {}", kSyntheticTrain, kSyntheticTest, kSyntheticSeed);
  return cached(kSynthetic, "", stamp,
                [] { return synthetic_digits(kSyntheticTrain, kSyntheticTest, kSyntheticSeed); });
}

// The digits datasets that are wanted and here, and those that are not.
struct DigitsMembers {
  std::vector<std::string> here;
  std::vector<std::string> missing;
};

// What is missing is replaced, once, by the digits we draw ourselves.
DigitsMembers digits_members(const DataOptions& options) {
  DigitsMembers members;
  const auto& wanted = options.domains.empty() ? kDigitsMembers : options.domains;
  for (const std::string& name : wanted) {
    const bool is_member = std::find(kDigitsMembers.begin(), kDigitsMembers.end(), name) != kDigitsMembers.end();
    if (!is_member && name != kSynthetic) {
      fail_user("'{}' is no domain of digits; it has: {}, {}", name, join(kDigitsMembers, ", "), kSynthetic);
    }
    if (is_member && find_dataset(name)) {
      members.here.push_back(name);
      continue;
    }
    if (is_member) members.missing.push_back(name);
    const bool with_synthetic = std::find(members.here.begin(), members.here.end(), kSynthetic) != members.here.end();
    if (!with_synthetic) members.here.emplace_back(kSynthetic);
  }
  return members;
}

Dataset load_digits(const DataOptions& options) {
  const auto [here, missing] = digits_members(options);
  std::vector<Dataset> members;
  for (const std::string& name : here) {
    members.push_back(name == kSynthetic ? load_synthetic() : load_entry(*find_entry(name), 0));
  }
  if (!missing.empty()) {
    warn("digits: {} {} not here; {} stands in ({})", join(missing, ", "), missing.size() == 1 ? "is" : "are",
         kSynthetic, how_to_get(*find_entry(missing.front())));
  }
  return join_as_domains(kDigits, members, options.image_size > 0 ? options.image_size : kDigitsSize);
}

Dataset load_base(const DataOptions& options) {
  if (options.name == kCustom) {
    if (options.path.empty()) fail_user("data.name is custom, so data.path must say where the data is");
    return read_custom(options.path, kCustom, options.image_size, options.schema);
  }
  if (!options.classes.empty()) fail_user("data.classes is only used with data.name = \"custom\"");
  if (options.schema != SchemaChoice()) fail_user("data.schema is only used with data.name = \"custom\"");
  if (!options.path.empty()) fail_user("data.path is only used with data.name = \"custom\"");
  if (options.name == kDigits) return load_digits(options);
  if (options.name == kSynthetic) return load_synthetic();
  if (const CatalogueEntry* entry = find_entry(options.name)) return load_entry(*entry, options.image_size);
  fail_user("there is no dataset '{}'{}; see sotto data list", options.name, did_you_mean(options.name, known_names()));
}

void check_options(const DataOptions& options) {
  if (options.image_size < 0 || options.image_size > kMaxImageSize) {
    fail_user("data.image_size must be between 1 and {} (0 = the dataset's own), not {}", kMaxImageSize,
              options.image_size);
  }
  if (options.limit < 0) fail_user("data.limit must not be negative");
}

void resize(Dataset& dataset, int64_t size) {
  if (dataset.kind != Kind::kImages)
    fail_user("{} does not consist of images, which data.image_size and image backbones need", dataset.name);
  dataset.train.x = io::resize_images(dataset.train.x, size);
  if (dataset.test.size() > 0) dataset.test.x = io::resize_images(dataset.test.x, size);
}

Dataset with_domains(const Dataset& dataset, const std::vector<std::string>& names, uint64_t seed) {
  if (dataset.domains() > 1 || names == dataset.domain_names) return select_domains(dataset, names);
  if (dataset.kind != Kind::kImages) {
    fail_user("data.domains: {} has one domain and no images, so transforms cannot make more", dataset.name);
  }
  return deal_to_transforms(dataset, names, seed);
}

// A seeded sample.
void keep_at_most(Records& records, int64_t limit, RandomStream stream) {
  if (limit == 0 || limit >= records.size()) return;
  records = select_records(records, at::tensor(stream.sample_without_replacement(records.size(), limit)));
}

DatasetInfo info_of(const CatalogueEntry& entry) {
  return {entry.name, entry.what, find_dataset(entry.name), how_to_get(entry), entry.installable};
}

}  // namespace

Dataset load_dataset(const DataOptions& options, uint64_t seed) {
  check_options(options);
  Dataset dataset = load_base(options);
  if (options.image_size > 0) resize(dataset, options.image_size);
  if (!options.domains.empty() && options.name != kDigits) dataset = with_domains(dataset, options.domains, seed);
  keep_at_most(dataset.train, options.limit, RandomStream(seed, "limit"));
  keep_at_most(dataset.test, options.test_limit, RandomStream(seed, "test-limit"));
  validate(dataset);
  return dataset;
}

Dataset load_whole(const DataOptions& options) {
  DataOptions whole = options;
  whole.domains.clear();
  whole.image_size = 0;
  return load_base(whole);
}

bool is_family(const std::string& name) {
  return name == kDigits;
}

std::vector<std::string> family_members(const DataOptions& options) {
  return digits_members(options).here;
}

std::vector<DatasetInfo> list_datasets() {
  std::vector<DatasetInfo> infos;
  for (const CatalogueEntry& entry : catalogue()) infos.push_back(info_of(entry));
  infos.push_back(
      {kSynthetic, "12,000 RGB 32×32 digits drawn by sotto from typefaces", std::nullopt, "built in", false});
  infos.push_back({kDigits, "mnist, usps, svhn, mnistm as 4 domains, RGB 32×32", std::nullopt,
                   "made of those that are here; synthetic-digits fills gaps", false});
  return infos;
}

}  // namespace sotto::data
