#include "models/weights/weight_store.h"

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "models/fixed/timm_vit.h"
#include "models/script/archive.h"
#include "models/vision_language/clip_network.h"
#include "models/weights/pretrained_card.h"
#include "models/weights/weights.h"

#include <algorithm>
#include <array>

namespace sotto::models {
namespace {

constexpr std::string_view kPatches = "+patches";

struct Installed {
  const char* weights;
  const char* model;
  const char* file_ending;
  int64_t image_size;
};

constexpr std::array kInstalled = {Installed{"resnet50", "resnet50-keras", "model.json", 160},
                                   Installed{"mobilenet-v2", "mobilenet-v2", "model.json", 224},
                                   Installed{"minilm", "minilm", ".safetensors", 0}};

// Computed from an image by a formula: there are no weights.
constexpr std::array kFixed = {"hog", "scatter"};

bool is_fixed(const std::string& name) {
  return std::find(kFixed.begin(), kFixed.end(), name) != kFixed.end();
}

const Installed* find_installed(const std::string& name) {
  const auto found = std::find_if(kInstalled.begin(), kInstalled.end(),
                                  [&](const Installed& i) { return name == i.weights || name == i.model; });
  return found == kInstalled.end() ? nullptr : found;
}

// The first file, by name, whose name ends so; packages keep their weights at different depths.
std::optional<fs::path> find_file(const fs::path& folder, std::string_view ending) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error))
    if (entry.is_regular_file() && entry.path().filename().string().ends_with(ending)) found.push_back(entry.path());
  if (found.empty()) return std::nullopt;
  return *std::min_element(found.begin(), found.end());
}

std::vector<std::string> known_names(const std::string& what) {
  std::vector<std::string> names = pretrained_names();
  if (what == "backbone") names.insert(names.end(), kFixed.begin(), kFixed.end());
  for (const auto& installed : kInstalled) names.push_back(installed.weights);
  return names;
}

[[noreturn]] void fail_unknown(const std::string& what, const std::string& name) {
  const auto names = known_names(what);
  fail_user("unknown {} '{}'{}: neither a file nor one of {}; `sotto pretrain` makes more", what, name,
            did_you_mean(name, names), join(names, ", "));
}

fs::path installed_folder(const Installed& installed) {
  return data_home() / "weights" / installed.weights;
}

// Installed, or by path.
std::optional<fs::path> timm_vit_file(const std::string& name) {
  if (fs::is_regular_file(name)) return is_timm_vit(name) ? std::optional<fs::path>(name) : std::nullopt;
  if (!name.starts_with("vit-")) return std::nullopt;
  if (const auto installed = find_timm_vit(name)) return installed;
  fail_user(
      "backbone '{}' is not here: put its weights, with timm's names, into the folder `weights` of one of "
      "$SOTTO_DATA's "
      "folders, as {}.safetensors or {}-….safetensors; or name their file",
      name, name, name);
}

bool is_clip(const fs::path& file) {
  try {
    return find_tensor(read_weights(file), "token_embedding.weight").defined();
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace

fs::path find_weights(const std::string& name_or_path) {
  if (fs::exists(name_or_path)) return name_or_path;
  if (const Installed* installed = find_installed(name_or_path)) {
    const auto file = find_file(installed_folder(*installed), installed->file_ending);
    if (!file)
      fail_user("weights '{}' are not installed: run `sotto data install {}`", name_or_path, installed->weights);
    return *file;
  }
  const fs::path pretrained = pretrained_folder() / (name_or_path + ".pt");
  if (name_or_path.find('/') == name_or_path.npos && fs::exists(pretrained)) return pretrained;
  fail_unknown("weights", name_or_path);
}

fs::path find_tokenizer(const std::string& name_or_path) {
  for (const std::string& weights : {name_or_path, std::string("minilm")}) {
    const fs::path folder = find_weights(weights).parent_path();
    for (const char* name : {"tokenizer.json", "vocab.txt"})
      if (fs::exists(folder / name)) return folder / name;
  }
  fail_user("no tokenizer.json or vocab.txt beside weights '{}'", name_or_path);
}

Backbone find_backbone(const std::string& name) {
  const bool patches = name.ends_with(kPatches);
  const std::string whole = patches ? name.substr(0, name.size() - kPatches.size()) : name;
  ModelOptions model;
  if (is_fixed(name)) {
    model.name = name;
    return {model, 0};
  }
  if (const Installed* installed = find_installed(whole)) {
    model.name = installed->model;
    model.weights = installed->weights;
    if (patches && whole != kInstalled.front().weights) {
      fail_user("backbone '{}' has no patches; resnet50{} and CLIP files have", whole, kPatches);
    }
    if (patches) model.name += "-patches";
    return {model, installed->image_size};
  }
  if (const auto card = read_pretrained_card(name)) return {card->model, card->image_size};
  if (const auto vit = timm_vit_file(name)) {
    model.name = kTimmVit;
    model.weights = vit->string();
    return {model, TimmVit(*vit).resized()};
  }
  if (fs::is_regular_file(whole) && is_script(whole) && !is_clip(whole)) {
    if (patches) fail_user("backbone '{}' has no patches; resnet50{} and CLIP files have", whole, kPatches);
    model.name = kScriptBackbone;
    model.weights = whole;
    return {model, 0};
  }
  if (fs::is_regular_file(whole)) {
    model.name = patches ? "clip-patches" : "clip";
    model.weights = whole;
    return {model, Clip::load(whole)->shape().image_size};
  }
  fail_unknown("backbone", name);
}

std::vector<std::string> backbone_names(const std::string& features) {
  std::vector<std::string> names;
  for (const std::string& part : split(features, '+')) {
    if (!names.empty() && part == kPatches.substr(1)) {
      names.back() += kPatches;
    } else {
      names.push_back(part);
    }
  }
  return names;
}

fs::path pretrained_folder() {
  return data_home() / "weights" / "pretrained";
}

std::vector<std::string> pretrained_names() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(pretrained_folder(), error))
    if (entry.path().extension() == ".pt") names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace sotto::models
