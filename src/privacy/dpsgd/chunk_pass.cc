#include "privacy/dpsgd/chunk_pass.h"

#include "base/error.h"
#include "models/ops/per_example.h"
#include "privacy/dpsgd/conv_term.h"
#include "privacy/dpsgd/tap.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <unordered_set>

namespace sotto::privacy {
namespace {

using torch::autograd::Node;

void check_separates_examples(const ClippedLayer& layer, const at::Tensor& input, const at::Tensor& output,
                              int64_t examples) {
  if (input.dim() > 0 && output.dim() > 0 && input.size(0) == examples && output.size(0) == examples) return;
  fail_user(
      "per-example clipping: layer '{}' saw a tensor whose first dimension is not the batch of {}, so that its "
      "gradient "
      "cannot be told apart by example; give it one row per example",
      layer.name, examples);
}

// How often the graph behind `root` leads directly into each of the accumulators.
std::unordered_map<const Node*, size_t> count_edges(Node* root, const std::unordered_set<const Node*>& accumulators) {
  std::unordered_map<const Node*, size_t> counts;
  std::unordered_set<const Node*> visited = {root};
  std::vector<Node*> open = {root};
  while (!open.empty()) {
    Node* node = open.back();
    open.pop_back();
    for (const auto& edge : node->next_edges()) {
      Node* next = edge.function.get();
      if (next == nullptr) continue;
      if (accumulators.contains(next))
        ++counts[next];
      else if (visited.insert(next).second)
        open.push_back(next);
    }
  }
  return counts;
}

}  // namespace

at::Tensor RehearsalPass::on_forward(models::Layer& layer, const at::Tensor& input, const at::Tensor& output) {
  activation_floats_ += output.numel();
  ++calls_[&layer];
  if (const auto found = layers_.find(&layer); found != layers_.end()) {
    check_separates_examples(found->second, input, output, 1);
    kept_floats_ += found->second.term->kept_per_example(input, output);
  }
  return output;
}

bool RehearsalPass::called_once(const models::Layer& layer) const {
  const auto found = calls_.find(&layer);
  return found != calls_.end() && found->second == 1;
}

ChunkPass::ChunkPass(const ClippedLayers& layers, const RehearsalPass* rehearsal, Chunk& chunk)
    : layers_(layers), rehearsal_(rehearsal), chunk_(chunk), anchor_(at::zeros({}).set_requires_grad(true)) {}

ChunkPass::~ChunkPass() {
  for (LayerTerm* term : measured_) term->forget();
}

at::Tensor ChunkPass::on_forward(models::Layer& layer, const at::Tensor& input, const at::Tensor& output) {
  const auto found = layers_.find(&layer);
  if (found == layers_.end()) return output;
  check_separates_examples(found->second, input, output, chunk_.examples());
  Calls& calls = calls_[&layer];
  calls.layer = &found->second;
  count_call(calls);
  return tap(output, anchor_,
             [this, &calls, in = input.detach()](const at::Tensor& gradient) { collect(calls, in, gradient); });
}

at::Tensor ChunkPass::on_conv_block(models::Conv2d& conv, const at::Tensor& input, const models::Pooling& pooling) {
  const auto found = layers_.find(&conv);
  const auto& options = conv.options();
  if (found == layers_.end() || options.groups != 1) return {};
  if (rehearsal_ == nullptr || !rehearsal_->called_once(conv)) return {};
  auto* term = dynamic_cast<ConvTerm*>(found->second.term.get());
  Calls& calls = calls_[&conv];
  calls.layer = &found->second;
  const auto use = [this, term, &calls](const models::ops::ConvShape& shape, const at::Tensor& rows,
                                        const std::vector<double>& squares) {
    ++calls.seen;
    measured_.push_back(term);
    term->measure_rows(shape, rows, squares, chunk_);
  };
  const at::Tensor output = models::ops::conv2d_relu_max_pool2d_per_example(
      input, conv.weight, conv.bias, options.stride, options.padding, pooling.kernel, pooling.stride, anchor_, use);
  if (!output.defined()) return {};
  check_separates_examples(found->second, input, output, chunk_.examples());
  calls.fused = true;
  count_call(calls);
  return output;
}

void ChunkPass::count_call(Calls& calls) {
  ++calls.expected;
  if (calls.fused && calls.expected > 1)
    fail_user("per-example clipping: layer '{}' was called more often than for the first example", calls.layer->name);
}

void ChunkPass::collect(Calls& calls, const at::Tensor& input, const at::Tensor& gradient) {
  ++calls.seen;
  calls.waiting.push_back({input, gradient});
  if (calls.seen == calls.expected) measure_waiting(calls);
}

void ChunkPass::measure_waiting(Calls& calls) {
  measured_.push_back(calls.layer->term.get());
  calls.layer->term->measure(calls.waiting, chunk_);
  calls.waiting.clear();
}

void ChunkPass::measure(const at::Tensor& losses) {
  if (!losses.requires_grad()) return;
  const at::Tensor loss = losses.sum();
  torch::autograd::grad({loss}, {anchor_}, {}, c10::nullopt, false, true);
  // Layers not all of whose calls led to the loss are still waiting.
  for (auto& [layer, calls] : calls_)
    if (!calls.waiting.empty()) measure_waiting(calls);
  check_nothing_escaped(loss);
}

void ChunkPass::add_weighted() {
  for (LayerTerm* term : measured_) term->add_weighted(chunk_);
  measured_.clear();
}

void ChunkPass::check_nothing_escaped(const at::Tensor& loss) const {
  std::unordered_set<const Node*> accumulators;
  std::vector<std::shared_ptr<Node>> alive;
  for (const auto& [layer, clipped] : layers_)
    for (const at::Tensor& parameter : clipped.parameters) {
      alive.push_back(torch::autograd::impl::grad_accumulator(parameter));
      accumulators.insert(alive.back().get());
    }
  const auto edges = count_edges(loss.grad_fn().get(), accumulators);
  size_t next = 0;
  for (const auto& [layer, clipped] : layers_) {
    const auto calls = calls_.find(layer);
    const size_t seen = calls == calls_.end() ? 0 : calls->second.seen;
    for (const std::string& name : clipped.parameter_names) {
      const auto found = edges.find(alive[next++].get());
      if (found != edges.end() && found->second > seen)
        fail_user(
            "per-example clipping: parameter '{}' is used outside of its layer, where its gradient cannot be told "
            "apart "
            "by example",
            name);
    }
  }
}

}  // namespace sotto::privacy
