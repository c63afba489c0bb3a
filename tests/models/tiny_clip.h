// A CLIP small enough to be trained by a test: it tells red, green and blue pictures by name.
#pragma once

#include "base/random.h"
#include "models/text/byte_pair.h"
#include "models/vision_language/clip_network.h"

#include <ATen/ATen.h>
#include <torch/optim/adam.h>

#include <memory>
#include <string>
#include <vector>

namespace sotto::models {

inline const std::vector<std::string> kColourNames = {"red", "green", "blue"};
inline constexpr int64_t kColourSide = 16;

// Bytes [count, 3, side, side]; picture i is of colour i mod 3, brighter in that channel than in the others.
inline at::Tensor colour_pictures(int64_t count, uint64_t seed) {
  RandomStream stream(seed, "colours");
  at::Tensor pictures = at::empty({count, 3, kColourSide, kColourSide}).uniform_(0, 140, stream.torch_generator());
  for (int64_t i = 0; i < count; ++i) pictures[i][i % 3] += 70;
  return pictures.to(at::kByte);
}

inline at::Tensor as_batch(const at::Tensor& bytes) {
  return bytes.to(at::kFloat) / 127.5 - 1.0;
}

inline std::shared_ptr<Clip> train_tiny_clip() {
  RandomStream init(5, "tiny-clip");
  ClipShape shape;
  shape.image_size = kColourSide;
  auto clip = std::make_shared<Clip>(shape, init.torch_generator());
  const BytePair tokenizer;
  std::vector<at::Tensor> ids;
  std::vector<int64_t> lengths;
  for (const std::string& name : kColourNames) {
    const auto tokens = tokenizer.encode("a photo of a " + name, shape.context);
    lengths.push_back(static_cast<int64_t>(tokens.size()));
    ids.push_back(at::constant_pad_nd(at::tensor(tokens, at::kLong), {0, 32 - lengths.back()}));
  }
  const at::Tensor all = at::cat(ids), length = at::tensor(lengths, at::kLong);
  std::vector<at::Tensor> parameters;
  for (const auto& [name, value] : clip->weights()) {
    parameters.push_back(value);
    parameters.back().set_requires_grad(true);
  }
  torch::optim::Adam optimizer(parameters, torch::optim::AdamOptions(1e-3));
  const auto unit = [](const at::Tensor& x) { return x / x.norm(2, 1, true); };
  // Whatever stands before the name, it is the name that counts: so that prompts can be learnt.
  const auto before_name = static_cast<int64_t>(tokenizer.encode("a photo of a", shape.context).size()) - 1;
  for (uint64_t step = 0; step < 120; ++step) {
    const at::Tensor images =
        unit(clip->image_features(clip_pixels_of_batch(as_batch(colour_pictures(24, 100 + step)))).select(1, 0));
    RandomStream noise(step, "before-the-name");
    at::Tensor shift = at::zeros({3, 32, shape.text_width});
    shift.narrow(1, 1, before_name - 1).normal_(0.0, 0.05, noise.torch_generator());
    const at::Tensor texts = unit(clip->text_features(clip->word_vectors(all).view({3, 32, -1}) + shift, length));
    const at::Tensor loss =
        at::cross_entropy_loss(at::matmul(images, texts.t()) / 0.07, at::arange(24, at::kLong).remainder(3));
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
  }
  for (at::Tensor& parameter : parameters) parameter.set_requires_grad(false);
  return clip;
}

}  // namespace sotto::models
