#include "experiments/chance.h"

#include "federation/client_score.h"
#include "federation/evaluator.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace sotto::experiments {
namespace {

constexpr double kStandardErrors = 3;

}  // namespace

Chance chance_of(const federation::Setup& setup) {
  const std::vector<int64_t> clients = federation::evaluated_clients(setup.spec());
  const federation::HeldOut held_out(setup, clients);
  const int64_t classes = setup.dataset().classes();
  at::Tensor shares = at::zeros({classes}, at::kDouble);
  Chance chance;
  int64_t tested = 0;
  for (const int64_t client : clients) {
    const at::Tensor rows = setup.partition().shard(client).test;
    if (rows.size(0) == 0) continue;
    const at::Tensor counts = at::bincount(held_out.records.y.index_select(0, rows), {}, classes);
    shares += counts.to(at::kDouble) / static_cast<double>(rows.size(0));
    chance.records += rows.size(0);
    ++tested;
  }
  if (tested > 0) chance.accuracy = shares.max().item<double>() / static_cast<double>(tested);
  return chance;
}

bool clears_chance(const std::vector<double>& means, const std::vector<double>& stds, int64_t repeats,
                   const Chance& chance) {
  double best = 0, variance = 0;
  for (const double mean : means) best = std::isnan(mean) ? best : std::max(best, mean);
  for (const double std : stds) variance += std::isnan(std) ? 0 : std * std / static_cast<double>(stds.size());
  const double of_runs = std::sqrt(variance / static_cast<double>(repeats));
  const double of_records =
      std::sqrt(chance.accuracy * (1 - chance.accuracy) / static_cast<double>(std::max<int64_t>(chance.records, 1)));
  return best > chance.accuracy + kStandardErrors * std::max(of_runs, of_records);
}

}  // namespace sotto::experiments
