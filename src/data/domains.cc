#include "data/domains.h"

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "data/record_ops.h"
#include "data/transforms.h"
#include "io/images/resample.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <set>

namespace sotto::data {
namespace {

void check_distinct(const std::vector<std::string>& names, const std::vector<std::string>& known,
                    const std::string& of) {
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      constexpr size_t kMaxListed = 12;
      const std::string all = known.size() <= kMaxListed ? join(known, ", ") : fmt::format("{} domains", known.size());
      fail_user("'{}' is no domain of {}{}; it has: {}", name, of, did_you_mean(name, known), all);
    }
    if (!seen.insert(name).second) fail_user("data.domains names '{}' twice", name);
  }
}

Records keep_domains(const Records& records, const at::Tensor& new_number) {
  if (records.size() == 0) return {};
  const at::Tensor renumbered = new_number.index_select(0, records.domain);
  const at::Tensor rows = rows_where(renumbered >= 0);
  Records kept = select_records(records, rows);
  kept.domain = renumbered.index_select(0, rows);
  return kept;
}

Records deal(const Records& records, const std::vector<std::string>& transforms, RandomStream stream) {
  if (records.size() == 0) return {};
  const auto order = stream.permutation(records.size());
  Records dealt = records;
  dealt.x = at::empty_like(records.x);
  dealt.domain = at::empty_like(records.y);
  auto* const domain = dealt.domain.data_ptr<int64_t>();
  for (size_t i = 0; i < order.size(); ++i) domain[order[i]] = static_cast<int64_t>(i % transforms.size());
  for (size_t t = 0; t < transforms.size(); ++t) {
    const at::Tensor rows = rows_where(dealt.domain == static_cast<int64_t>(t));
    dealt.x.index_copy_(0, rows, apply_transform(transforms[t], records.x.index_select(0, rows)));
  }
  return dealt;
}

Records as_domain(const Records& records, int64_t domain, int64_t size, bool colour) {
  if (records.size() == 0) return {};
  Records shaped = records;
  shaped.x = io::resize_images(colour ? io::as_rgb(records.x) : records.x, size);
  shaped.domain = at::full_like(records.y, domain);
  return shaped;
}

}  // namespace

Dataset select_domains(const Dataset& dataset, const std::vector<std::string>& names) {
  check_distinct(names, dataset.domain_names, dataset.name);
  at::Tensor new_number = at::full({dataset.domains()}, -1, at::kLong);
  for (size_t i = 0; i < names.size(); ++i) {
    const auto old = std::find(dataset.domain_names.begin(), dataset.domain_names.end(), names[i]);
    new_number[old - dataset.domain_names.begin()] = static_cast<int64_t>(i);
  }
  Dataset selected = dataset;
  selected.domain_names = names;
  selected.train = keep_domains(dataset.train, new_number);
  selected.test = keep_domains(dataset.test, new_number);
  return selected;
}

Dataset deal_to_transforms(const Dataset& dataset, const std::vector<std::string>& transforms, uint64_t seed) {
  check_distinct(transforms, transform_names(), dataset.name + " (transforms)");
  Dataset dealt = dataset;
  dealt.domain_names = transforms;
  dealt.train = deal(dataset.train, transforms, RandomStream(seed, "domain-of-record"));
  dealt.test = deal(dataset.test, transforms, RandomStream(seed, "domain-of-test-record"));
  return dealt;
}

Dataset join_as_domains(const std::string& name, const std::vector<Dataset>& members, int64_t size) {
  SOTTO_INVARIANT(!members.empty());
  const bool colour =
      std::any_of(members.begin(), members.end(), [](const Dataset& d) { return d.train.x.size(1) == 3; });
  Dataset joined;
  joined.name = name;
  joined.kind = Kind::kImages;
  joined.class_names = members.front().class_names;
  std::vector<Records> train;
  std::vector<Records> test;
  for (const Dataset& member : members) {
    SOTTO_INVARIANT(member.kind == Kind::kImages && member.classes() == joined.classes());
    train.push_back(as_domain(member.train, joined.domains(), size, colour));
    test.push_back(as_domain(member.test, joined.domains(), size, colour));
    joined.domain_names.push_back(member.name);
  }
  joined.train = concat_records(train);
  joined.test = concat_records(test);
  return joined;
}

}  // namespace sotto::data
