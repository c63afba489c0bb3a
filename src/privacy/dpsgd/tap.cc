#include "privacy/dpsgd/tap.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

namespace sotto::privacy {
namespace {

using torch::autograd::variable_list;

class TapNode : public torch::autograd::Node {
 public:
  explicit TapNode(std::function<void(const at::Tensor&)> use) : use_(std::move(use)) {}

  variable_list apply(variable_list&& gradients) override {
    if (gradients[0].defined()) use_(gradients[0]);
    return {std::move(gradients[0]), at::Tensor()};
  }

 private:
  std::function<void(const at::Tensor&)> use_;
};

}  // namespace

at::Tensor tap(const at::Tensor& tensor, const at::Tensor& anchor, std::function<void(const at::Tensor&)> use) {
  auto node = std::make_shared<TapNode>(std::move(use));
  node->set_next_edges(torch::autograd::collect_next_edges(tensor, anchor));
  at::Tensor tapped = tensor.detach();
  torch::autograd::set_history(tapped, node);
  return tapped;
}

}  // namespace sotto::privacy
