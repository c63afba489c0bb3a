#include "attacks/shadow.h"

#include "attacks/parts/membership.h"
#include "base/random.h"

#include <ATen/ATen.h>
#include <torch/optim/adam.h>

#include <nlohmann/json.hpp>

#include <cmath>
#include <vector>

namespace sotto::attacks {
namespace {

constexpr int64_t kHidden = 64;
constexpr int kAttackSteps = 200;
constexpr double kAttackRate = 0.01;

// Two layers, one output.
struct AttackNetwork {
  AttackNetwork(int64_t inputs, RandomStream& stream) {
    at::Generator generator = stream.torch_generator();
    const auto make = [&](int64_t rows, int64_t columns) {
      at::Tensor weight = at::empty({rows, columns}, at::kFloat);
      weight.normal_(0, std::sqrt(2.0 / static_cast<double>(columns)), generator);
      return weight.requires_grad_();
    };
    parameters = {make(kHidden, inputs), at::zeros({kHidden}).requires_grad_(), make(1, kHidden),
                  at::zeros({1}).requires_grad_()};
  }

  at::Tensor operator()(const at::Tensor& x) const {
    const at::Tensor hidden = at::relu(at::linear(x, parameters[0], parameters[1]));
    return at::linear(hidden, parameters[2], parameters[3]).squeeze(1);
  }

  std::vector<at::Tensor> parameters;
};

nlohmann::json run(const Target& target, const AttackOptions& options) {
  return ask_shadows(target, options,
                     [&](const Shadows& shadows, const at::Tensor& logits, const Membership& membership) {
                       const ShadowAttack attack =
                           shadow_scores(shadows, logits, membership.records.y, membership.members, options.seed);
                       nlohmann::json result = describe(attack.scores);
                       result["success_rate"] = attack.success_rate;
                       return result;
                     });
}

}  // namespace

ShadowAttack shadow_scores(const Shadows& shadows, const at::Tensor& target, const at::Tensor& labels, int64_t members,
                           uint64_t seed) {
  const int64_t classes = target.size(1);
  const at::Tensor known = shadows.logits.softmax(-1).reshape({-1, classes});
  const at::Tensor held = shadows.held.reshape({-1}).to(at::kFloat);
  const at::Tensor of = labels.repeat({shadows.logits.size(0)});
  const at::Tensor asked = target.to(at::kFloat).softmax(-1);
  at::Tensor scores = at::zeros({target.size(0)}, at::kDouble);
  for (int64_t label = 0; label < classes; ++label) {
    const at::Tensor rows = (of == label).nonzero().squeeze(1), wanted = (labels == label).nonzero().squeeze(1);
    if (rows.size(0) == 0 || wanted.size(0) == 0) continue;
    RandomStream stream(seed, "attack-network", 0, static_cast<uint64_t>(label));
    AttackNetwork network(classes, stream);
    torch::optim::Adam optimizer(network.parameters, torch::optim::AdamOptions(kAttackRate));
    const at::Tensor x = known.index_select(0, rows), y = held.index_select(0, rows);
    for (int step = 0; step < kAttackSteps; ++step) {
      optimizer.zero_grad();
      at::binary_cross_entropy_with_logits(network(x), y).backward();
      optimizer.step();
    }
    scores.index_copy_(0, wanted, network(asked.index_select(0, wanted)).detach().to(at::kDouble));
  }
  ShadowAttack attack{.scores = by_membership(scores, members)};
  double right = 0;
  for (const double score : attack.scores.members) right += score > 0 ? 1 : 0;
  for (const double score : attack.scores.others) right += score > 0 ? 0 : 1;
  attack.success_rate = right / static_cast<double>(target.size(0));
  return attack;
}

AttackEntry shadow() {
  return {.name = "shadow",
          .what = "whether a record was trained on, by networks that watched shadow models",
          .citation = "Shokri et al., IEEE S&P 2017",
          .needs = "the last model",
          .shared = true,
          .run = run};
}

}  // namespace sotto::attacks
