// Watches a forward pass and hands what the backward pass brings to the layers' terms.
#pragma once

#include "models/layers.h"
#include "privacy/dpsgd/layer_term.h"

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace sotto::privacy {

struct ClippedLayer {
  std::string name;
  std::unique_ptr<LayerTerm> term;
  std::vector<at::Tensor> parameters;  // the clipped ones
  std::vector<std::string> parameter_names;
};

using ClippedLayers = std::unordered_map<const models::Layer*, ClippedLayer>;

// One example in a forward pass: that every clipped layer has it along its first dimension, and what a pass keeps.
class RehearsalPass : public models::LayerObserver {
 public:
  explicit RehearsalPass(const ClippedLayers& layers) : layers_(layers) {}
  at::Tensor on_forward(models::Layer& layer, const at::Tensor& input, const at::Tensor& output) override;

  int64_t activation_floats() const { return activation_floats_; }  // outputs of all layers
  int64_t kept_floats() const { return kept_floats_; }              // what terms keep until the factors are known
  bool called_once(const models::Layer& layer) const;

 private:
  const ClippedLayers& layers_;
  std::unordered_map<const models::Layer*, int64_t> calls_;
  int64_t activation_floats_ = 0, kept_floats_ = 0;
};

class ChunkPass : public models::LayerObserver {
 public:
  // Fused blocks are taken where `rehearsal` (may be null) saw their layer called once.
  ChunkPass(const ClippedLayers& layers, const RehearsalPass* rehearsal, Chunk& chunk);
  ~ChunkPass() override;
  ChunkPass(const ChunkPass&) = delete;
  ChunkPass& operator=(const ChunkPass&) = delete;

  at::Tensor on_forward(models::Layer& layer, const at::Tensor& input, const at::Tensor& output) override;

  at::Tensor on_conv_block(models::Conv2d& conv, const at::Tensor& input, const models::Pooling& pooling) override;

  // The backward pass of Σ losses: measures every layer. A UserError if a clipped parameter was also used outside of
  // its layer.
  void measure(const at::Tensor& losses);
  // After chunk.clip(): adds the weighted sums to the gradients.
  void add_weighted();

 private:
  struct Calls {
    const ClippedLayer* layer;
    size_t expected = 0, seen = 0;
    bool fused = false;
    std::vector<Use> waiting;
  };

  static void count_call(Calls& calls);
  void collect(Calls& calls, const at::Tensor& input, const at::Tensor& gradient);
  void measure_waiting(Calls& calls);
  void check_nothing_escaped(const at::Tensor& loss) const;

  const ClippedLayers& layers_;
  const RehearsalPass* rehearsal_;
  Chunk& chunk_;
  at::Tensor anchor_;
  std::unordered_map<const models::Layer*, Calls> calls_;
  std::vector<LayerTerm*> measured_;
};

}  // namespace sotto::privacy
