#include "models/script/opaque.h"

#include "base/error.h"
#include "models/layers.h"
#include "models/script/archive.h"
#include "models/script/trial.h"

#include <ATen/ATen.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace sotto::models {
namespace {

using torch::jit::Block;
using torch::jit::Node;

bool draws(const Node& node) {
  static const std::set<std::string> drawing = {
      "aten::bernoulli",   "aten::bernoulli_",  "aten::cauchy_", "aten::exponential_", "aten::geometric_",
      "aten::log_normal_", "aten::multinomial", "aten::normal",  "aten::normal_",      "aten::poisson",
      "aten::random_",     "aten::rrelu",       "aten::rrelu_",  "aten::uniform_",     "aten::rand",
      "aten::rand_like",   "aten::randint",     "aten::randn",   "aten::randint_like", "aten::randn_like",
      "aten::randperm",    "aten::binomial",    "aten::seed",    "aten::manual_seed",  "aten::rrelu_with_noise"};
  return node.isNondeterministic() || drawing.contains(node.kind().toQualString());
}

// Old archives count BatchNorm's batches in this way.
bool remembers(const Node& node) {
  return node.kind() == c10::prim::SetAttr && node.s(c10::attr::name) != "num_batches_tracked";
}

const Node* find_node(const Block& block, bool (*wanted)(const Node&)) {
  for (const Node* node : block.nodes()) {
    if (wanted(*node)) return node;
    for (const Block* inner : node->blocks()) {
      if (const Node* found = find_node(*inner, wanted)) return found;
    }
  }
  return nullptr;
}

// The module and its forward, in evaluation mode, without dropout and random numbers.
class Program {
 public:
  explicit Program(const std::filesystem::path& file)
      : file_(file.string()), script_(read_whole_script(file)), code_(script_.graph, "forward") {
    if (const Node* node = find_node(*script_.graph->block(), draws)) {
      refuse(fmt::format("{} draws random numbers with {}", place_of(*node), node->kind().toQualString()));
    }
  }

  torch::jit::Module& module() { return script_.module; }
  const torch::jit::Graph& graph() const { return *script_.graph; }

  at::Tensor forward(const c10::IValue& self, const at::Tensor& x) const {
    try {
      torch::jit::Stack stack = {self, x.clone()};
      torch::jit::InterpreterState(code_).run(stack);
      return stack.at(0).toTensor();
    } catch (const std::exception& error) {
      fail_user("{}: it fails on {} records of the shape [{}]: {}", file_, x.size(0),
                fmt::join(x.sizes().slice(1), ", "), reason_of(error));
    }
  }

  // Of a copy; random numbers that no rule knows are noticed.
  at::Tensor try_out(bool training, const at::Tensor& x) const {
    const at::NoGradGuard no_grad;
    torch::jit::Module copy = script_.module.deepcopy();
    copy.train(training);
    const at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
    const at::Tensor before = generator.get_state();
    at::Tensor result = forward(copy._ivalue(), x);
    if (!at::equal(before, generator.get_state())) refuse("it draws random numbers");
    return result;
  }

  [[noreturn]] void refuse(const std::string& what) const {
    fail_user("{}: {}, so that no two runs are the same; take that out", file_, what);
  }

 private:
  std::string file_;
  WholeScript script_;
  torch::jit::Code code_;
};

std::pair<torch::nn::Module*, std::string> owner_of(torch::nn::Module& model, const std::string& path) {
  const size_t dot = path.rfind('.');
  if (dot == path.npos) return {&model, path};
  return {&submodule(model, path.substr(0, dot)), path.substr(dot + 1)};
}

class Trained : public OpaqueModel {
 public:
  Trained(const Blueprint& blueprint, const std::filesystem::path& file, std::string why)
      : program_(file), why_(std::move(why)), classes_(blueprint.task.classes) {
    if (const Node* node = find_node(*program_.graph().block(), remembers)) {
      program_.refuse(
          fmt::format("{} keeps '{}' from one batch to the next", place_of(*node), node->s(c10::attr::name)));
    }
    if (blueprint.options.freeze_backbone || blueprint.options.dropout > 0) {
      fail_user("{}: model.freeze_backbone and model.dropout need a model that can be rebuilt; {}", file.string(),
                why_);
    }
    try_out(blueprint.task, file.string());
    std::set<const at::TensorImpl*> known;
    for (const auto& parameter : program_.module().named_parameters()) {
      if (!known.insert(parameter.value.unsafeGetTensorImpl()).second) continue;
      if (parameter.value.scalar_type() != at::kFloat) {
        fail_user("{}: the parameter '{}' holds {} numbers; call model.float() before the archive is saved",
                  file.string(), parameter.name, c10::toString(parameter.value.scalar_type()));
      }
      const auto [owner, name] = owner_of(*this, parameter.name);
      owner->register_parameter(name, parameter.value, parameter.value.requires_grad());
    }
    for (const auto& buffer : program_.module().named_buffers()) {
      if (!known.insert(buffer.value.unsafeGetTensorImpl()).second) continue;
      const auto [owner, name] = owner_of(*this, buffer.name);
      owner->register_buffer(name, buffer.value);
    }
  }

  void train(bool on) override {
    Model::train(on);
    program_.module().train(on);
  }

  at::Tensor features(const at::Tensor& x) override { return program_.forward(program_.module()._ivalue(), x); }
  at::Tensor classify(const at::Tensor& features) override { return features; }
  int64_t feature_width() const override { return classes_; }
  std::string head_name() const override { return "classifier of its own"; }
  const std::string& why() const override { return why_; }

 private:
  void try_out(const Task& task, const std::string& file) const {
    for (const bool training : {false, true}) {
      const at::Tensor logits = program_.try_out(training, made_up_records(task, 5));
      if (logits.dim() != 2 || logits.size(0) != 5 || logits.size(1) != task.classes) {
        fail_user("{}: for 5 records it gives [{}], and must give logits [5, {}]", file,
                  fmt::join(logits.sizes(), ", "), task.classes);
      }
    }
  }

  Program program_;
  std::string why_;
  int64_t classes_;
};

class Frozen : public Model {
 public:
  Frozen(const std::filesystem::path& file, const Task& task) : file_(file.string()), program_(file) {
    for (const auto& parameter : program_.module().parameters()) parameters_.push_back(parameter);
    versions_ = versions();
    width_ = program_.try_out(false, made_up_records(task, 1)).numel();
  }

  // Everything but the parameters is a copy, made for this record.
  at::Tensor features(const at::Tensor& x) override {
    const at::NoGradGuard no_grad;
    c10::IValue::HashAliasedIValueMap kept;
    for (const at::Tensor& parameter : parameters_) kept[parameter] = parameter;
    const c10::IValue self = c10::IValue(program_.module()._ivalue()).deepcopy(kept);
    const at::Tensor given = program_.forward(self, x);
    if (versions() != versions_) fail_user("{}: it changes its parameters while it looks at a record", file_);
    if (given.numel() != width_) {
      fail_user("{}: it gives {} numbers for one record and {} for another", file_, width_, given.numel());
    }
    return given.to(at::kFloat).reshape({1, width_});
  }
  at::Tensor classify(const at::Tensor& features) override { return features; }
  int64_t feature_width() const override { return width_; }
  std::string head_name() const override { return "head"; }

 private:
  std::vector<int64_t> versions() const {
    std::vector<int64_t> found;
    for (const at::Tensor& parameter : parameters_) found.push_back(parameter._version());
    return found;
  }

  std::string file_;
  Program program_;
  std::vector<at::Tensor> parameters_;
  std::vector<int64_t> versions_;
  int64_t width_ = 0;
};

}  // namespace

std::shared_ptr<Model> make_opaque_model(const Blueprint& blueprint, const std::filesystem::path& file,
                                         const std::string& why) {
  auto model = std::make_shared<Trained>(blueprint, file, why);
  model->train(true);
  return model;
}

std::shared_ptr<Model> make_script_backbone(const std::filesystem::path& file, const Task& task) {
  return std::make_shared<Frozen>(file, task);
}

bool can_run_as_it_is(const std::filesystem::path& file) {
  try {
    const Program program(file);
    return true;
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace sotto::models
