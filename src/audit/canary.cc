#include "audit/canary.h"

#include "base/random.h"

#include <ATen/ATen.h>

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace sotto::audit {
namespace {

constexpr int64_t kLabels = 3;
constexpr uint64_t kFarPoints = 8;
constexpr double kFar = 20;

using Change = std::function<at::Tensor(const at::Tensor&)>;
struct NamedChange {
  std::string name;
  Change of;
};

// Images stay what a camera could have seen; features may be anything.
std::vector<NamedChange> changes(data::Kind kind) {
  const auto as_it_is = [](const at::Tensor& x) { return x.clone(); };
  if (kind == data::Kind::kTokens || kind == data::Kind::kText) return {{"as it is", as_it_is}};
  if (kind == data::Kind::kImages) {
    return {{"as it is", as_it_is},
            {"inverted", [](const at::Tensor& x) { return -x; }},
            {"white", [](const at::Tensor& x) { return at::ones_like(x); }},
            {"black", [](const at::Tensor& x) { return -at::ones_like(x); }}};
  }
  return {{"as it is", as_it_is},
          {"× 3", [](const at::Tensor& x) { return 3 * x; }},
          {"× 10", [](const at::Tensor& x) { return 10 * x; }},
          {"× -10", [](const at::Tensor& x) { return -10 * x; }},
          {"× 100", [](const at::Tensor& x) { return 100 * x; }}};
}

// Far away in directions that have nothing to do with the record: some of them lie where a model cannot decide, so that
// both labels have large gradients.
std::vector<NamedChange> far_points(data::Kind kind) {
  std::vector<NamedChange> points;
  if (kind != data::Kind::kFeatures) return points;
  for (uint64_t i = 0; i < kFarPoints; ++i) {
    points.push_back({fmt::format("far point {}", i), [i](const at::Tensor& x) {
                        at::Generator generator = RandomStream(i, "canary").torch_generator();
                        const at::Tensor direction = at::empty_like(x).normal_(0, 1, generator);
                        return kFar * direction / direction.norm();
                      }});
  }
  return points;
}

Edit edit_to(Change change, std::optional<int64_t> label) {
  return [=](const Record& record) { return Record{change(record.x), label.value_or(record.label)}; };
}

}  // namespace

Record blank(const Record& record) {
  return {at::full_like(record.x, std::numeric_limits<float>::quiet_NaN()), record.label};
}

std::vector<Canary> canaries(const data::Dataset& dataset, privacy::Adjacency adjacency) {
  auto known = changes(dataset.kind);
  const size_t near = known.size();
  for (NamedChange& point : far_points(dataset.kind)) known.push_back(std::move(point));
  std::vector<Canary> pairs;
  const bool one_sided = privacy::is_one_sided(adjacency),
             same_label = adjacency == privacy::Adjacency::kReplaceSameLabel;
  const Edit absent = [](const Record&) { return std::optional<Record>(); };
  const int64_t labels = same_label ? 1 : std::min(dataset.classes(), kLabels);
  for (int64_t label = 0; label < labels; ++label) {
    const std::optional<int64_t> given = same_label ? std::nullopt : std::optional(label);
    const std::string suffix = same_label ? "" : fmt::format(", label {}", label);
    for (size_t a = 0; a < known.size(); ++a) {
      const Edit with = edit_to(known[a].of, given);
      if (one_sided) {
        pairs.push_back({known[a].name + suffix, absent, with});
        continue;
      }
      for (size_t b = a + 1; b < near; ++b) {
        pairs.push_back(
            {fmt::format("{} or {}{}", known[a].name, known[b].name, suffix), edit_to(known[b].of, given), with});
      }
      if (!same_label && label > 0) {
        pairs.push_back({fmt::format("{}, label {} or 0", known[a].name, label), edit_to(known[a].of, 0), with});
      }
    }
  }
  return pairs;
}

}  // namespace sotto::audit
