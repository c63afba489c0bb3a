// Which term a layer has.
#pragma once

#include "models/layers.h"
#include "privacy/dpsgd/layer_term.h"

#include <functional>
#include <memory>

namespace sotto::privacy {

// The clipped parameter behind one of a layer's tensors, or nothing if it is frozen or left out.
using FindParameter = std::function<const Parameter*(const at::Tensor& tensor)>;

// Null for a kind of layer that has no per-example form, and for one none of whose parameters is clipped.
std::unique_ptr<LayerTerm> make_term(models::Layer& layer, const FindParameter& find);

// The kinds. `weight` and `bias` may each be null, not both.
std::unique_ptr<LayerTerm> linear_term(const Parameter* weight, const Parameter* bias);
std::unique_ptr<LayerTerm> conv_term(const models::Conv2d& conv, const Parameter* weight, const Parameter* bias);
std::unique_ptr<LayerTerm> norm_term(const models::GroupNorm& norm, const Parameter* weight, const Parameter* bias);
std::unique_ptr<LayerTerm> norm_term(const models::LayerNorm& norm, const Parameter* weight, const Parameter* bias);
std::unique_ptr<LayerTerm> norm_term(const models::BatchNorm2d& norm, const Parameter* weight, const Parameter* bias);
std::unique_ptr<LayerTerm> embedding_term(const Parameter& weight);
std::unique_ptr<LayerTerm> position_term(const Parameter& weight);

}  // namespace sotto::privacy
