// A linear classifier on features that nothing was learnt for.
#include "models/architectures/headed_model.h"
#include "models/fixed/hog.h"
#include "models/fixed/scattering.h"

#include <ATen/ATen.h>

namespace sotto::models {
namespace {

class HogModel : public HeadedModel {
 public:
  explicit HogModel(const Blueprint& blueprint) : HogModel(blueprint, image_shape(blueprint, 1)) {}

  at::Tensor features(const at::Tensor& x) override {
    const at::Tensor images = x.contiguous(), found = at::empty({x.size(0), shape_.floats()});
    for (int64_t i = 0; i < x.size(0); ++i) hog(shape_, images[i].data_ptr<float>(), found[i].data_ptr<float>());
    return found;
  }

 private:
  HogModel(const Blueprint& blueprint, const ImageShape& image) : shape_(image.channels, image.height, image.width) {
    add_head(blueprint, shape_.floats());
  }

  HogShape shape_;
};

class ScatterModel : public HeadedModel {
 public:
  explicit ScatterModel(const Blueprint& blueprint) : ScatterModel(blueprint, image_shape(blueprint, 1)) {}

  at::Tensor features(const at::Tensor& x) override { return scattering_.features(x); }

 private:
  ScatterModel(const Blueprint& blueprint, const ImageShape& image)
      : scattering_(image.channels, image.height, image.width) {
    add_head(blueprint, scattering_.floats());
  }

  Scattering scattering_;
};

}  // namespace

std::shared_ptr<Model> make_hog_model(const Blueprint& blueprint) {
  return std::make_shared<HogModel>(blueprint);
}

std::shared_ptr<Model> make_scatter_model(const Blueprint& blueprint) {
  return std::make_shared<ScatterModel>(blueprint);
}

}  // namespace sotto::models
