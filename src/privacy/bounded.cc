#include "privacy/bounded.h"

#include "base/error.h"
#include "privacy/access.h"
#include "privacy/row_bounds.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace sotto::privacy {
namespace {

void check_rules(const NamedTensors& values, const std::vector<ClipRule>& rules) {
  int64_t covered = 0;
  for (const ClipRule& rule : rules) {
    require_clip_bound(rule.name, rule.bound);
    covered += rule.tensors;
  }
  SOTTO_INVARIANT(covered == static_cast<int64_t>(values.size()));
}

at::Tensor vector_norm(const at::Tensor& rows, Norm norm) {
  return row_sums(norm == Norm::kL1 ? rows.abs() : rows.square());
}

// The factor that brings each row of a group's tensors, taken together, to norm ≤ bound; 0 for non-finite rows.
at::Tensor clip_factors(const std::vector<at::Tensor>& rows, double bound, Norm norm) {
  at::Tensor total = at::zeros({rows.front().size(0)}, at::kDouble);
  for (const at::Tensor& part : rows) total += vector_norm(part, norm);
  if (norm == Norm::kL2) total = total.sqrt();
  const at::Tensor factor = (bound * kShrink / total).clamp_max(1.0);
  return at::where(at::isfinite(total), factor, at::zeros_like(factor));
}

// rows · factor, where a factor of 0 wins over NaN and ∞.
at::Tensor scaled_rows(const at::Tensor& rows, const at::Tensor& factor) {
  const at::Tensor column = factor.to(rows.scalar_type()).unsqueeze(1);
  return at::where(column > 0, rows * column, at::zeros({}, rows.options()));
}

std::vector<at::Tensor> as_rows(const NamedTensors& values, size_t first, int64_t count, bool whole) {
  std::vector<at::Tensor> rows;
  for (size_t i = first; i < first + static_cast<size_t>(count); ++i) {
    const at::Tensor& value = values[i].value;
    if (whole) {
      rows.push_back(value.reshape({1, value.numel()}));
    } else {
      rows.push_back(value.dim() > 1 ? value.flatten(1) : value.unsqueeze(1));
    }
  }
  return rows;
}

Bounded clip(NamedTensors& values, const std::vector<ClipRule>& rules, Norm norm, bool whole, double divisor,
             double sensitivity_per_bound) {
  check_rules(values, rules);
  std::vector<Group> groups;
  size_t first = 0;
  for (const ClipRule& rule : rules) {
    Group group{rule.name, rule.tensors, 0, rule.bound * sensitivity_per_bound};
    if (rule.tensors > 0) {
      const auto rows = as_rows(values, first, rule.tensors, whole);
      const at::Tensor factor = clip_factors(rows, rule.bound, norm);
      for (size_t i = 0; i < rows.size(); ++i) {
        at::Tensor& value = values[first + i].value;
        const auto shape = whole ? value.sizes().vec() : value.sizes().slice(1).vec();
        const at::Tensor scaled = scaled_rows(rows[i], factor);
        value = (whole ? scaled[0] : scaled.sum(0, false, at::kDouble).div_(divisor)).reshape(shape);
        group.coordinates += value.numel();
      }
    }
    first += static_cast<size_t>(rule.tensors);
    groups.push_back(std::move(group));
  }
  return Access::bounded(std::move(values), std::move(groups), norm);
}

}  // namespace

Bounded clip_each(Contribution&& per_record, const std::vector<ClipRule>& rules, double divisor, Adjacency adjacency,
                  Norm norm) {
  SOTTO_INVARIANT(divisor > 0 && norm != Norm::kMax);
  return clip(Access::values(per_record), rules, norm, false, divisor, sum_sensitivity(1.0, adjacency) / divisor);
}

Bounded clip_whole(Contribution&& whole, const std::vector<ClipRule>& rules, const Neighbours& neighbours, Norm norm) {
  SOTTO_INVARIANT(norm != Norm::kMax);
  const double factor = neighbours.unit == Unit::kRecord ? 2.0 : sum_sensitivity(1.0, neighbours.adjacency);
  return clip(Access::values(whole), rules, norm, true, 1.0, factor);
}

Bounded clamp_each(Contribution&& scores, double high) {
  SOTTO_INVARIANT(high > 0 && std::isfinite(high));
  NamedTensors& values = Access::values(scores);
  Group group{"scores", static_cast<int64_t>(values.size()), total_elements(values), high};
  for (auto& [name, value] : values) value = value.nan_to_num(0.0).clamp(0.0, high);
  return Access::bounded(std::move(values), {std::move(group)}, Norm::kMax);
}

Bounded count_each(Contribution&& labels, int64_t classes, Adjacency adjacency) {
  NamedTensors& values = Access::values(labels);
  SOTTO_INVARIANT(values.size() == 1 && classes > 0);
  const at::Tensor counts = at::bincount(values[0].value.reshape({-1}), {}, classes);
  SOTTO_INVARIANT(counts.numel() == classes);
  double sensitivity = 1.0;
  if (adjacency == Adjacency::kReplace) sensitivity = std::sqrt(2.0);
  if (adjacency == Adjacency::kReplaceSameLabel) sensitivity = 0.0;
  return Access::bounded({{values[0].name, counts}}, {{"counts", 1, classes, sensitivity}}, Norm::kL2);
}

std::vector<Group> CellRule::groups() const {
  double total = 0;
  for (const Part& part : parts) total += part.weight;
  const bool appears = is_one_sided(adjacency);
  SOTTO_INVARIANT(cells > 0 && total > 0 && (!appears || (count_share > 0 && count_share < 1)));
  std::vector<Group> groups;
  for (const Part& part : parts) {
    const double share = part.weight / total * (appears ? 1 - count_share : 1.0);
    groups.push_back({part.name, 1, cells * part.width, sum_sensitivity(part.bound, adjacency) / std::sqrt(share)});
  }
  double count = 2;
  if (appears) count = 1 / std::sqrt(count_share);
  if (adjacency == Adjacency::kReplaceSameLabel && by_label) count = 0;
  groups.push_back({"counts", 1, cells, count});
  return groups;
}

Bounded sum_cells(Contribution&& per_record, const CellRule& rule) {
  NamedTensors& values = Access::values(per_record);
  SOTTO_INVARIANT(values.size() == rule.parts.size() + 1);
  const at::Tensor cell = values.back().value;
  const int64_t records = cell.size(0);
  constexpr int64_t kRows = 1024;
  const at::Tensor counted = at::ones({records}, at::kDouble);
  for (size_t g = 0; g < rule.parts.size(); ++g) {
    const at::Tensor& rows = values[g].value;
    SOTTO_INVARIANT(rows.size(0) == records && rows.size(1) == rule.parts[g].width);
    require_clip_bound(rule.parts[g].name, rule.parts[g].bound);
    at::Tensor sums = at::zeros({rule.cells, rule.parts[g].width}, at::kDouble);
    for (int64_t begin = 0; begin < records; begin += kRows) {
      const at::Tensor some = rows.narrow(0, begin, std::min(kRows, records - begin));
      const at::Tensor factor = clip_factors({some}, rule.parts[g].bound, Norm::kL2);
      sums.index_add_(0, cell.narrow(0, begin, some.size(0)), scaled_rows(some, factor).to(at::kDouble));
      if (is_one_sided(rule.adjacency)) counted.narrow(0, begin, some.size(0)).mul_(factor > 0);
    }
    values[g].value = sums;
  }
  values.back().value = at::bincount(cell, counted, rule.cells).to(at::kDouble);
  SOTTO_INVARIANT(values.back().value.numel() == rule.cells);
  return Access::bounded(std::move(values), rule.groups(), Norm::kJoint);
}

}  // namespace sotto::privacy
