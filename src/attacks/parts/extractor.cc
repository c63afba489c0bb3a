#include "attacks/parts/extractor.h"

#include "base/error.h"

#include <ATen/ATen.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace sotto::attacks {
namespace {

constexpr int64_t kBatch = 256;

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

}  // namespace

Extractor torch_script_extractor(const std::filesystem::path& file) {
  const std::string name = file.string();
  if (!std::filesystem::is_regular_file(file)) fail_user("--extractor {}: there is no such file", name);
  auto module = std::make_shared<torch::jit::Module>();
  try {
    *module = torch::jit::load(name, at::kCPU);
  } catch (const c10::Error&) {
    fail_user("--extractor {}: not a TorchScript module; write one with torch.jit.script(model).save(FILE)", name);
  }
  module->eval();
  const auto answer = [module, name](const at::Tensor& x) {
    at::IValue out;
    try {
      out = module->forward({x});
    } catch (const std::exception& error) {
      fail_user("--extractor {}: fails on records of shape {}: {}", name, fmt::join(x.sizes().slice(1), "×"),
                first_line(error.what()));
    }
    if (!out.isTensor() || out.toTensor().dim() != 2 || out.toTensor().size(0) != x.size(0)) {
      fail_user("--extractor {}: must answer {} records with a tensor [{}, d]", name, x.size(0), x.size(0));
    }
    return out.toTensor().to(at::kFloat);
  };
  return {name, [answer](const at::Tensor& x) {
            const at::NoGradGuard no_gradient;
            std::vector<at::Tensor> parts;
            for (int64_t first = 0; first < x.size(0); first += kBatch) {
              parts.push_back(answer(x.narrow(0, first, std::min(kBatch, x.size(0) - first))));
            }
            return at::cat(parts);
          }};
}

Extractor extractor_or(const std::filesystem::path& file, Extractor own) {
  return file.empty() ? std::move(own) : torch_script_extractor(file);
}

}  // namespace sotto::attacks
