#include "data/origin.h"

#include "base/files.h"
#include "data/record_ops.h"
#include "data/source.h"

#include <ATen/ATen.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace sotto::data {
namespace {

// Beyond it domains are people (writers), and a list of them would be longer than it is useful.
constexpr int64_t kMostDomainsApart = 64;
constexpr const char* kCustomName = "custom";

std::string dataset_name(const DataOptions& options) {
  if (options.name != kCustomName || options.path.empty()) return options.name;
  std::error_code error;
  const fs::path path = fs::weakly_canonical(fs::absolute(options.path), error);
  return error ? fs::absolute(options.path).string() : path.string();
}

std::string_view bytes_of_row(const at::Tensor& rows, int64_t row) {
  const auto width = static_cast<size_t>(rows.nbytes()) / static_cast<size_t>(rows.size(0));
  return {static_cast<const char*>(rows.data_ptr()) + static_cast<size_t>(row) * width, width};
}

// Labels are left out: the same records with other labels are the same people.
std::string content_of(const Records& records) {
  std::vector<std::string> hashes;
  const at::Tensor x = records.x.defined() ? records.x.contiguous() : at::Tensor();
  for (int64_t i = 0; i < records.size(); ++i) {
    hashes.push_back(sha256(x.defined() ? bytes_of_row(x, i) : records.texts[static_cast<size_t>(i)]));
  }
  std::sort(hashes.begin(), hashes.end());
  std::string all;
  for (const std::string& hash : hashes) all += hash;
  return sha256(all);
}

Records of_domain(const Dataset& dataset, size_t domain) {
  return select_records(dataset.train, rows_where(dataset.train.domain == static_cast<int64_t>(domain)));
}

bool is_custom(const std::string& dataset) {
  return dataset == kCustomName || dataset.starts_with('/');
}

bool may_be_same_dataset(const std::string& one, const std::string& other) {
  if (one == other) return true;
  const bool path_unknown = one == kCustomName || other == kCustomName;
  return path_unknown && is_custom(one) && is_custom(other);
}

bool share_records(const Part& one, const Part& other) {
  if (!one.content.empty() && one.content == other.content) return true;
  const bool same_domain = one.domain.empty() || other.domain.empty() || one.domain == other.domain;
  return same_domain && may_be_same_dataset(one.dataset, other.dataset);
}

}  // namespace

Origin origin_of(const DataOptions& options) {
  Origin origin;
  if (is_family(options.name)) {
    for (const std::string& member : family_members(options)) {
      DataOptions of_member;
      of_member.name = member;
      for (Part& part : origin_of(of_member)) origin.push_back(std::move(part));
    }
    return origin;
  }
  const Dataset dataset = load_whole(options);
  if (dataset.domains() == 1 || dataset.domains() > kMostDomainsApart) {
    return {{.dataset = dataset_name(options), .content = content_of(dataset.train)}};
  }
  for (size_t domain = 0; domain < dataset.domain_names.size(); ++domain) {
    const std::string& name = dataset.domain_names[domain];
    const auto& wanted = options.domains;
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), name) == wanted.end()) continue;
    const Records records = of_domain(dataset, domain);
    if (records.size() == 0) continue;
    origin.push_back({.dataset = dataset_name(options), .domain = name, .content = content_of(records)});
  }
  return origin;
}

Origin named_origin(const std::string& dataset) {
  DataOptions options;
  options.name = dataset;
  if (dataset == kCustomName) return {{.dataset = dataset}};
  return named_origin(options);
}

Origin named_origin(const DataOptions& options) {
  if (!is_family(options.name)) return {{.dataset = dataset_name(options)}};
  Origin origin;
  for (const std::string& member : family_members(options)) origin.push_back({.dataset = member});
  return origin;
}

std::optional<Part> common_part(const Origin& one, const Origin& other) {
  const auto shared = std::find_if(one.begin(), one.end(), [&](const Part& part) {
    return std::any_of(other.begin(), other.end(),
                       [&](const Part& candidate) { return share_records(part, candidate); });
  });
  return shared == one.end() ? std::nullopt : std::optional(*shared);
}

std::string describe(const Part& part) {
  return part.domain.empty() ? part.dataset : fmt::format("domain {} of {}", part.domain, part.dataset);
}

nlohmann::json to_json(const Origin& origin) {
  nlohmann::json value = nlohmann::json::array();
  for (const Part& part : origin) {
    value.push_back({{"dataset", part.dataset}, {"domain", part.domain}, {"sha256", part.content}});
  }
  return value;
}

Origin origin_from(const nlohmann::json& value) {
  Origin origin;
  for (const auto& part : value) {
    origin.push_back({.dataset = part.at("dataset").get<std::string>(),
                      .domain = part.at("domain").get<std::string>(),
                      .content = part.at("sha256").get<std::string>()});
  }
  return origin;
}

}  // namespace sotto::data
