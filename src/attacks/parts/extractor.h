// By what features are pictures compared? Fréchet distances say nothing without saying that.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <functional>
#include <string>

namespace sotto::attacks {

struct Extractor {
  std::string name;                                      // for people and for the JSON
  std::function<at::Tensor(const at::Tensor&)> of = {};  // records as a model sees them → features [n, d]
};

// A TorchScript module of pictures [n, C, H, W] in [-1, 1]. A file that is none, a module that fails on them and one
// whose answers are not [n, d] are UserErrors.
Extractor torch_script_extractor(const std::filesystem::path& file);

// That of the file; `own` if there is none.
Extractor extractor_or(const std::filesystem::path& file, Extractor own);

}  // namespace sotto::attacks
