// A TorchScript archive as one list of operators: calls inlined, in evaluation mode, without branches that constants
// decide, without checks of shapes, and without operators that change a tensor in place.
#pragma once

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>

#include <filesystem>
#include <memory>
#include <string>

namespace sotto::models {

struct ScriptArchive {
  torch::jit::Module module;
  std::shared_ptr<torch::jit::Graph> graph;     // of forward: self and one tensor in, one tensor out
  std::shared_ptr<torch::jit::Graph> original;  // the same before it was touched, without dropout
};

// A file that is no TorchScript archive, or whose forward is not of this form, is a UserError that names the place.
ScriptArchive read_script(const std::filesystem::path& file);

// What the archive itself gives for x in evaluation mode. One that was traced in training is taken without its dropout.
at::Tensor evaluate(const ScriptArchive& archive, const at::Tensor& x);

// Where a node comes from, for people: "the layer 'encoder.lstm'", or a line of the archive's code.
std::string place_of(const torch::jit::Node& node);

}  // namespace sotto::models
