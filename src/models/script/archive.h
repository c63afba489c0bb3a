// A TorchScript archive as one list of operators: calls inlined, in evaluation mode, without branches that constants
// decide, without checks of shapes, and without operators that change a tensor in place.
#pragma once

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>

#include <filesystem>
#include <memory>
#include <string>

namespace sotto::models {

// An archive as it is: its module in evaluation mode, and forward with calls inlined and without dropout.
struct WholeScript {
  torch::jit::Module module;
  std::shared_ptr<torch::jit::Graph> graph;  // self and one tensor in, one tensor out
};

struct ScriptArchive {
  WholeScript whole;
  std::shared_ptr<torch::jit::Graph> graph;  // forward as one list of operators, self and one tensor in
};

// A file that is no TorchScript archive, or whose forward is not of this form, is a UserError that names the place.
ScriptArchive read_script(const std::filesystem::path& file);
WholeScript read_whole_script(const std::filesystem::path& file);

// What the archive itself gives for x. One that was traced in training is taken without its dropout.
at::Tensor evaluate(const WholeScript& script, const at::Tensor& x);

// Whether the file is a TorchScript archive at all.
bool is_script(const std::filesystem::path& file);

// Where a node comes from, for people: "the layer 'encoder.lstm'", or a line of the archive's code.
std::string place_of(const torch::jit::Node& node);

}  // namespace sotto::models
