#include "methods/prompts/prompt_file.h"

#include "base/error.h"
#include "io/safetensors.h"
#include "methods/catalogue.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

namespace sotto::methods {
namespace {

using nlohmann::json;

constexpr const char* kPrompt = "prompt";

json to_json(const TransportOptions& o) {
  return {{"entropy", o.entropy}, {"mass", o.mass}, {"iterations", o.iterations}, {"threshold", o.threshold}};
}

TransportOptions transport_from(const json& value) {
  TransportOptions o;
  o.entropy = value.value("entropy", o.entropy);
  o.mass = value.value("mass", o.mass);
  o.iterations = value.value("iterations", o.iterations);
  o.threshold = value.value("threshold", o.threshold);
  return o;
}

}  // namespace

bool holds_prompt(const RunSettings& spec, const NamedTensors& weights) {
  return !find_method(spec.method).uses_model && find_tensor(weights, kPrompt).defined();
}

PromptFile prompt_file_of(const RunSettings& spec, const std::vector<std::string>& class_names, int64_t feature_width,
                          const NamedTensors& weights) {
  const json options = json::parse(spec.method_options);
  return {.encoder = options.at("encoder").get<std::string>(),
          .feature_width = feature_width,
          .classes = class_names,
          .transport = transport_from(options),
          .prompts = find_tensor(weights, kPrompt)};
}

void write_prompt_file(const std::filesystem::path& path, const PromptFile& file) {
  NamedTensors tensors;
  tensors.push_back({kPrompt, file.prompts});
  io::write_safetensors(path, {.tensors = std::move(tensors),
                               .metadata = {{"encoder", file.encoder},
                                            {"feature_width", std::to_string(file.feature_width)},
                                            {"classes", json(file.classes).dump()},
                                            {"transport", to_json(file.transport).dump()}}});
}

PromptFile read_prompt_file(const std::filesystem::path& path) {
  const io::SafeTensors content = io::read_safetensors(path);
  PromptFile file;
  file.prompts = find_tensor(content.tensors, kPrompt);
  try {
    file.encoder = content.metadata.at("encoder");
    file.feature_width = std::stoll(content.metadata.at("feature_width"));
    json::parse(content.metadata.at("classes")).get_to(file.classes);
    file.transport = transport_from(json::parse(content.metadata.at("transport")));
  } catch (const std::exception&) {
    file.prompts = at::Tensor();
  }
  if (!file.prompts.defined() || file.prompts.dim() != 3 || file.classes.empty() || file.feature_width < 1) {
    fail_user("{}: not a prompt; sotto export makes one of a run that learnt prompts", path.string());
  }
  return file;
}

PromptClassifier::PromptClassifier(const PromptFile& file)
    : model_(models::open_vision_language(file.encoder, file.feature_width)), transport_(file.transport) {
  if (file.prompts.size(2) != model_->word_width()) {
    fail_user("the prompt's vectors have {} numbers, those of encoder '{}' have {}", file.prompts.size(2), file.encoder,
              model_->word_width());
  }
  const at::NoGradGuard no_grad;
  const models::PromptedClasses classes(model_, file.classes, file.prompts.size(1));
  text_ = classes.text_features(file.prompts);
}

at::Tensor PromptClassifier::probabilities(const std::string& bytes, const std::string& where) const {
  const at::NoGradGuard no_grad;
  return at::softmax(prompt_logits(text_, model_->encode_image(bytes, where), model_->temperature(), transport_)[0], 0);
}

}  // namespace sotto::methods
