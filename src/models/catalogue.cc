#include "models/catalogue.h"

#include "base/error.h"
#include "base/text.h"
#include "models/script/script_model.h"

#include <algorithm>
#include <array>

namespace sotto::models {
namespace {

using B = const Blueprint&;

// clang-format off
constexpr std::array kCatalogue = {
    CatalogueEntry{"logistic", "multinomial logistic regression", false, "", "", [](B b) { return make_mlp(b, {}); }, nullptr},
    CatalogueEntry{"mlp", "fully connected, ReLU; hidden widths 256, 128 unless model.hidden says otherwise", false, "hidden", "", [](B b) { return make_mlp(b, b.options.hidden.empty() ? std::vector<int64_t>{256, 128} : b.options.hidden); }, nullptr},
    CatalogueEntry{"linear", "a linear head that starts at zero, on records scaled to norm 1", false, "", "", make_linear_head, nullptr},
    CatalogueEntry{"hog", "a linear head on histograms of oriented gradients", false, "", "Dalal and Triggs, CVPR 2005", make_hog_model, nullptr},
    CatalogueEntry{"scatter", "a linear head on wavelet scattering of two orders", false, "", "Bruna and Mallat, IEEE TPAMI 2013", make_scatter_model, nullptr},
    CatalogueEntry{"adapter", "a residual adapter on cached features; model.adapter is its bottleneck, 64 unless set", false, "adapter", "Houlsby et al., ICML 2019", make_feature_adapter, nullptr},
    CatalogueEntry{"cnn", "MNIST CNN: conv 16@8×8/2, conv 32@4×4/2, stride-1 pooling, 32 hidden", false, "", "", [](B b) { return make_conv_net(b, {{16, 8, 2, 3, 2, 1}, {32, 4, 2, 0, 2, 1}}, {32}); }, nullptr},
    CatalogueEntry{"cnn-pac", "small CNN in the manner of PAC-DP (whose sizes are not printed): two 5×5 convolutions (8, 16) with max-pooling, then linear", false, "", "after Zhou et al., PAC-DP", [](B b) { return make_conv_net(b, {{8, 5, 1, 2, 2, 2}, {16, 5, 1, 2, 2, 2}}, {}); }, nullptr},
    CatalogueEntry{"cnn-cifar", "CNN for CIFAR: two 5×5 convolutions (32, 64) with max-pooling, 512 hidden", false, "", "", [](B b) { return make_conv_net(b, {{32, 5, 1, 2, 2, 2}, {64, 5, 1, 2, 2, 2}}, {512}); }, nullptr},
    CatalogueEntry{"resnet18", "ResNet-18; 3×3 stem up to 64 pixels; model.norm group or batch", false, "norm", "He et al., CVPR 2016", [](B b) { return make_resnet(b, {{2, 2, 2, 2}, false}); }, nullptr},
    CatalogueEntry{"resnet34", "ResNet-34", false, "norm", "He et al., CVPR 2016", [](B b) { return make_resnet(b, {{3, 4, 6, 3}, false}); }, nullptr},
    CatalogueEntry{"resnet50", "ResNet-50 with torchvision's parameter names", false, "norm", "He et al., CVPR 2016", [](B b) { return make_resnet(b, {{3, 4, 6, 3}, true}); }, nullptr},
    CatalogueEntry{"resnet152", "ResNet-152", false, "norm", "He et al., CVPR 2016", [](B b) { return make_resnet(b, {{3, 8, 36, 3}, true}); }, nullptr},
    CatalogueEntry{"resnet50-keras", "the ImageNet ResNet-50 of weights 'resnet50'", false, "", "He et al., CVPR 2016", make_keras_resnet50, translate_keras_resnet50},
    CatalogueEntry{"resnet50-keras-patches", "the same; features of the whole image, then of its patches", false, "", "He et al., CVPR 2016", make_keras_resnet50_patches, translate_keras_resnet50},
    CatalogueEntry{"mobilenet-v2", "MobileNetV2, batch norm folded, of weights 'mobilenet-v2'", false, "", "Sandler et al., CVPR 2018", make_mobilenet_v2, translate_mobilenet_v2},
    CatalogueEntry{"vit-tiny", "ViT, 192 wide, 12 blocks, 3 heads; model.patch, model.adapter", false, "width depth heads patch adapter", "Dosovitskiy et al., ICLR 2021", [](B b) { return make_vit(b, {192, 12, 3}); }, translate_vit},
    CatalogueEntry{"vit-small", "ViT, 384 wide, 12 blocks, 6 heads", false, "width depth heads patch adapter", "Dosovitskiy et al., ICLR 2021", [](B b) { return make_vit(b, {384, 12, 6}); }, translate_vit},
    CatalogueEntry{"vit-base", "ViT, 768 wide, 12 blocks, 12 heads", false, "width depth heads patch adapter", "Dosovitskiy et al., ICLR 2021", [](B b) { return make_vit(b, {768, 12, 12}); }, translate_vit},
    CatalogueEntry{"minilm", "BERT-style sentence encoder, 6 layers, 384 wide, of weights 'minilm'", true, "", "Wang et al., NeurIPS 2020", make_minilm, translate_minilm},
    CatalogueEntry{"torchscript", "a model of your own: model.weights is its TorchScript archive", false, "", "", make_script_model, nullptr, true},
};
// clang-format on

}  // namespace

std::span<const CatalogueEntry> catalogue() {
  return kCatalogue;
}

bool has_key(const std::string& model, const std::string& key) {
  const auto found =
      std::find_if(kCatalogue.begin(), kCatalogue.end(), [&](const CatalogueEntry& e) { return model == e.name; });
  if (found == kCatalogue.end()) return true;
  const auto keys = split(found->keys, ' ');
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

const CatalogueEntry& find_entry(const std::string& name) {
  const auto found =
      std::find_if(kCatalogue.begin(), kCatalogue.end(), [&](const CatalogueEntry& e) { return name == e.name; });
  if (found != kCatalogue.end()) return *found;
  std::vector<std::string> names;
  for (const auto& entry : kCatalogue) names.push_back(entry.name);
  fail_user("unknown model '{}'{}; known models: {}", name, did_you_mean(name, names), join(names, ", "));
}

std::vector<ModelInfo> list_models() {
  std::vector<ModelInfo> models;
  for (const auto& entry : kCatalogue) models.push_back({entry.name, entry.what});
  return models;
}

bool is_token_model(const std::string& name) {
  return find_entry(name).tokens;
}

}  // namespace sotto::models
