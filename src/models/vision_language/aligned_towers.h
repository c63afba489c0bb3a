// A vision–language model made of two that never met: ResNet-50 for images, MiniLM for texts.
//
// A ridge map, in closed form and without any image, takes MiniLM's "a photo of a ‹ImageNet class›" to the row that
// ResNet-50's classifier has for the class. A surrogate in the manner of LiT and DeViSE, not CLIP.
#pragma once

#include "models/vision_language/vision_language.h"

#include <memory>

namespace sotto::models {

// A UserError if the weights 'resnet50' and 'minilm' are not installed.
std::shared_ptr<const VisionLanguage> open_aligned_towers();

// argmin_W ‖texts·W - rows‖² + λ‖W‖²; texts [n, a], rows [n, b], W [a, b].
at::Tensor ridge_map(const at::Tensor& texts, const at::Tensor& rows, double lambda);

}  // namespace sotto::models
