#include "privacy/dpsgd/parameters.h"

#include "base/error.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace sotto::privacy {
namespace {

// Norms may miss squares that underflow in floats; against such a bound that is nothing.
constexpr double kSmallestBound = 1e-9;

bool holds(const ClipGroup& group, const std::string& name) {
  return std::any_of(group.prefixes.begin(), group.prefixes.end(),
                     [&](const std::string& prefix) { return name.starts_with(prefix); });
}

size_t group_of(const std::string& name, const std::vector<ClipGroup>& groups) {
  if (groups.empty()) return 0;
  std::vector<size_t> found;
  for (size_t group = 0; group < groups.size(); ++group)
    if (holds(groups[group], name)) found.push_back(group);
  if (found.size() == 1) return found.front();
  fail_user("clipping: parameter '{}' is in {} groups; every parameter must be in exactly one", name, found.size());
}

}  // namespace

std::vector<NamedParameter> clipped_parameters(const models::Model& model, const models::FlatParameters& flat,
                                               const ClipOptions& options) {
  NamedTensors tensors = model.shared_parameters();
  if (!options.shared_only)
    for (auto& personal : model.personal_parameters()) tensors.push_back(std::move(personal));
  std::erase_if(tensors, [&](const NamedTensor& tensor) {
    return std::find(options.left_out.begin(), options.left_out.end(), tensor.name) != options.left_out.end();
  });
  for (const ClipGroup& group : options.groups)
    if (std::none_of(tensors.begin(), tensors.end(), [&](const auto& tensor) { return holds(group, tensor.name); }))
      fail_user("clipping: no trainable parameter's name begins with '{}'",
                group.prefixes.empty() ? "" : group.prefixes.front());
  std::vector<NamedParameter> found;
  for (const auto& [name, value] : tensors) {
    const int64_t offset = value.data_ptr<float>() - flat.values().data_ptr<float>();
    SOTTO_INVARIANT(offset >= 0 && offset + value.numel() <= flat.values().numel());
    const at::Tensor gradient = flat.gradient().narrow(0, offset, value.numel()).view(value.sizes());
    found.push_back({name, {value, gradient, group_of(name, options.groups)}});
  }
  return found;
}

std::vector<double> clip_bounds(const ClipOptions& options) {
  std::vector<double> bounds;
  for (const ClipGroup& group : options.groups) bounds.push_back(group.bound);
  if (bounds.empty()) bounds.push_back(options.bound);
  check_bounds(bounds);
  return bounds;
}

void check_bounds(const std::vector<double>& bounds) {
  for (const double bound : bounds)
    if (!(bound >= kSmallestBound) || !std::isfinite(bound))
      fail_user("clipping: a bound must be at least {} and finite, not {}", kSmallestBound, bound);
}

}  // namespace sotto::privacy
