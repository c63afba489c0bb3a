#include "methods/prototypes/clustering.h"

#include "base/error.h"

#include <ATen/ATen.h>

#include <numeric>
#include <vector>

namespace sotto::methods {
namespace {

// Union–find with path halving.
class Components {
 public:
  explicit Components(int64_t count) : parent_(static_cast<size_t>(count)) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }

  void join(int64_t a, int64_t b) { parent_[static_cast<size_t>(root(a))] = root(b); }

  int64_t root(int64_t item) {
    auto at = static_cast<size_t>(item);
    while (parent_[at] != static_cast<int64_t>(at)) {
      parent_[at] = parent_[static_cast<size_t>(parent_[at])];
      at = static_cast<size_t>(parent_[at]);
    }
    return static_cast<int64_t>(at);
  }

 private:
  std::vector<int64_t> parent_;
};

// The same clusters, numbered from 0 in order of appearance.
at::Tensor renumbered(const std::vector<int64_t>& labels) {
  std::vector<int64_t> number(labels.size(), -1);
  at::Tensor result = at::empty({static_cast<int64_t>(labels.size())}, at::kLong);
  auto* out = result.data_ptr<int64_t>();
  int64_t next = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    int64_t& mine = number[static_cast<size_t>(labels[i])];
    if (mine < 0) mine = next++;
    out[i] = mine;
  }
  return result;
}

at::Tensor linked_to_nearest(const at::Tensor& points) {
  const int64_t count = points.size(0);
  const at::Tensor directions = points / points.norm(2, 1, true).clamp_min(1e-12);
  at::Tensor similarity = directions.mm(directions.t());
  similarity.fill_diagonal_(-2.0);
  const at::Tensor nearest = similarity.argmax(1).contiguous();
  Components components(count);
  for (int64_t i = 0; i < count; ++i) components.join(i, nearest.data_ptr<int64_t>()[i]);
  std::vector<int64_t> roots;
  for (int64_t i = 0; i < count; ++i) roots.push_back(components.root(i));
  return renumbered(roots);
}

at::Tensor squared_distances(const at::Tensor& points, const at::Tensor& centres) {
  return at::cdist(points, centres).square();
}

at::Tensor spread_out_rows(const at::Tensor& points, int64_t k, RandomStream& stream) {
  const int64_t count = points.size(0);
  std::vector<int64_t> chosen = {static_cast<int64_t>(stream.below(static_cast<uint64_t>(count)))};
  at::Tensor nearest = squared_distances(points, points.narrow(0, chosen[0], 1)).squeeze(1);
  while (static_cast<int64_t>(chosen.size()) < k) {
    const at::Tensor cumulative = nearest.to(at::kDouble).cumsum(0);
    const double total = cumulative[-1].item<double>();
    if (!(total > 0)) break;
    const int64_t next = std::min(
        count - 1, at::searchsorted(cumulative, at::scalar_tensor(stream.uniform() * total, at::kDouble), false, true)
                       .item<int64_t>());
    chosen.push_back(next);
    nearest = at::minimum(nearest, squared_distances(points, points.narrow(0, next, 1)).squeeze(1));
  }
  return points.index_select(0, at::tensor(chosen, at::kLong));
}

}  // namespace

int64_t cluster_count(const at::Tensor& labels) {
  return labels.numel() == 0 ? 0 : labels.max().item<int64_t>() + 1;
}

at::Tensor cluster_means(const at::Tensor& points, const at::Tensor& labels) {
  const int64_t clusters = cluster_count(labels);
  const at::Tensor sums = at::zeros({clusters, points.size(1)}, points.options()).index_add(0, labels, points);
  return sums / at::bincount(labels, {}, clusters).to(points.scalar_type()).unsqueeze(1);
}

at::Tensor finch(const at::Tensor& points) {
  SOTTO_INVARIANT(points.dim() == 2 && points.size(0) > 0);
  at::Tensor best = at::zeros({points.size(0)}, at::kLong);
  if (points.size(0) == 1) return best;
  at::Tensor labels = linked_to_nearest(points);
  while (cluster_count(labels) > 1) {
    best = labels;
    labels = linked_to_nearest(cluster_means(points, best)).index_select(0, best);
  }
  return best;
}

at::Tensor k_means(const at::Tensor& points, int64_t k, RandomStream& stream, int iterations) {
  SOTTO_INVARIANT(points.dim() == 2 && points.size(0) > 0 && k > 0);
  at::Tensor centres = spread_out_rows(points, std::min(k, points.size(0)), stream);
  at::Tensor labels;
  for (int i = 0; i <= iterations; ++i) {
    const at::Tensor nearest = squared_distances(points, centres).argmin(1).contiguous();
    const int64_t* found = nearest.data_ptr<int64_t>();
    const at::Tensor next = renumbered({found, found + nearest.numel()});
    if (labels.defined() && labels.equal(next)) break;
    labels = next;
    centres = cluster_means(points, labels);
  }
  return labels;
}

}  // namespace sotto::methods
