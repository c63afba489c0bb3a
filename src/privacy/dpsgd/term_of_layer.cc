#include "privacy/dpsgd/term_of_layer.h"

#include "models/script/free_layers.h"

namespace sotto::privacy {

std::unique_ptr<LayerTerm> make_term(models::Layer& layer, const FindParameter& find) {
  const auto with = [&](const auto& module, const auto& make) -> std::unique_ptr<LayerTerm> {
    const Parameter* weight = find(module.weight);
    const Parameter* bias = module.bias.defined() ? find(module.bias) : nullptr;
    return weight || bias ? make(weight, bias) : nullptr;
  };
  if (const auto* linear = dynamic_cast<models::Linear*>(&layer)) return with(*linear, linear_term);
  if (const auto* conv = dynamic_cast<models::Conv2d*>(&layer))
    return with(*conv, [&](auto* weight, auto* bias) { return conv_term(*conv, weight, bias); });
  if (const auto* norm = dynamic_cast<models::GroupNorm*>(&layer))
    return with(*norm, [&](auto* weight, auto* bias) { return norm_term(*norm, weight, bias); });
  if (const auto* norm = dynamic_cast<models::LayerNorm*>(&layer))
    return with(*norm, [&](auto* weight, auto* bias) { return norm_term(*norm, weight, bias); });
  if (const auto* norm = dynamic_cast<models::BatchNorm2d*>(&layer))
    return with(*norm, [&](auto* weight, auto* bias) { return norm_term(*norm, weight, bias); });
  if (const auto* table = dynamic_cast<models::Embedding*>(&layer))
    if (const Parameter* weight = find(table->weight)) return embedding_term(*weight);
  if (const auto* table = dynamic_cast<models::PositionEmbedding*>(&layer))
    if (const Parameter* weight = find(table->weight)) return position_term(*weight);
  if (const auto* linear = dynamic_cast<models::FreeLinear*>(&layer)) return with(*linear, linear_term);
  if (const auto* table = dynamic_cast<models::FreePositions*>(&layer))
    if (const Parameter* weight = find(table->weight)) return position_term(*weight);
  return nullptr;
}

}  // namespace sotto::privacy
