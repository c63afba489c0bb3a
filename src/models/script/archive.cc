#include "models/script/archive.h"

#include "base/error.h"
#include "base/text.h"

#include <torch/csrc/jit/passes/constant_propagation.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/passes/lower_graph.h>
#include <torch/csrc/jit/serialization/import.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

namespace sotto::models {
namespace {

using torch::jit::Block;
using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

constexpr std::uintmax_t kLargestArchive = std::uintmax_t{4} << 30;

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

torch::jit::Module load(const std::filesystem::path& file) {
  if (!std::filesystem::is_regular_file(file)) fail_user("there is no file {}", file.string());
  if (std::filesystem::file_size(file) > kLargestArchive) {
    fail_user("{} is larger than 4 GB, which is more than a model here can be", file.string());
  }
  try {
    return torch::jit::load(file.string(), at::Device(at::kCPU));
  } catch (const c10::Error& error) {
    fail_user("{} is not a TorchScript archive that can be read ({}): torch.jit.script(model).save(FILE) makes one",
              file.string(), first_line(error.what_without_backtrace()));
  } catch (const std::exception& error) {
    fail_user("{} is not a TorchScript archive that can be read ({}): torch.jit.script(model).save(FILE) makes one",
              file.string(), first_line(error.what()));
  }
}

// The object that a chain of attributes leads to.
c10::IValue object_of(const torch::jit::Module& module, const Value* value) {
  const Node* node = value->node();
  if (node->kind() == c10::prim::Param) return module._ivalue();
  return object_of(module, node->input(0)).toObject()->getAttr(node->s(c10::attr::name));
}

bool is_chain(const Value* value) {
  for (const Node* node = value->node(); node->kind() != c10::prim::Param; node = node->input(0)->node()) {
    if (node->kind() != c10::prim::GetAttr) return false;
  }
  return true;
}

// Numbers, flags and words that modules hold do not change, and nothing is in training.
void fix_attributes(const torch::jit::Module& module, Block* block) {
  for (Node* node : block->nodes()) {
    for (Block* inner : node->blocks()) fix_attributes(module, inner);
    if (node->kind() != c10::prim::GetAttr || !is_chain(node->output())) continue;
    c10::IValue value = object_of(module, node->output());
    if (value.isTensor() || value.isObject()) continue;
    if (node->s(c10::attr::name) == "training") value = false;
    const torch::jit::WithInsertPoint before(node);
    if (const auto constant = torch::jit::tryInsertConstant(*node->owningGraph(), value)) {
      node->output()->replaceAllUsesWith(*constant);
    }
  }
}

bool only_raises(const Block* block) {
  return std::any_of(block->nodes().begin(), block->nodes().end(),
                     [](const Node* node) { return node->kind() == c10::prim::RaiseException; });
}

// aten::relu_ and the like; aten::__getitem__ is not.
bool is_in_place(const Node* node) {
  const std::string kind = node->kind().toQualString();
  return kind.starts_with("aten::") && kind.ends_with("_") && !kind.ends_with("__");
}

// A loop over sizes whose result only a check wanted.
bool is_idle(const Node* node) {
  return node->kind() == c10::prim::Loop && !node->hasUses() &&
         std::none_of(node->blocks()[0]->nodes().begin(), node->blocks()[0]->nodes().end(), [](const Node* inner) {
           return inner->hasSideEffects() || !inner->blocks().empty() || is_in_place(inner);
         });
}

// `if …: raise …`, and what was computed for it. Shapes are tried out when the model is made.
bool drop_checks(Block* block) {
  bool changed = false;
  for (auto it = block->nodes().begin(); it != block->nodes().end();) {
    Node* node = *it++;
    for (Block* inner : node->blocks()) changed |= drop_checks(inner);
    if (is_idle(node)) {
      node->destroy();
      changed = true;
      continue;
    }
    if (node->kind() != c10::prim::If) continue;
    const bool first = only_raises(node->blocks()[0]), second = only_raises(node->blocks()[1]);
    if (first == second) continue;
    Block* other = node->blocks()[first ? 1 : 0];
    for (auto inner = other->nodes().begin(); inner != other->nodes().end();) (*inner++)->moveBefore(node);
    for (size_t i = 0; i < node->outputs().size(); ++i) node->outputs()[i]->replaceAllUsesWith(other->outputs()[i]);
    node->destroy();
    changed = true;
  }
  return changed;
}

// Results that share memory with what they are made of.
bool is_view(const Node* node) {
  static const std::set<std::string> views = {"aten::view",       "aten::reshape",   "aten::flatten", "aten::transpose",
                                              "aten::permute",    "aten::t",         "aten::select",  "aten::slice",
                                              "aten::narrow",     "aten::unsqueeze", "aten::squeeze", "aten::expand",
                                              "aten::chunk",      "aten::split",     "aten::unbind",  "aten::detach",
                                              "aten::contiguous", "aten::expand_as", "aten::view_as"};
  return views.contains(node->kind().toQualString());
}

// aten::relu_(x) becomes aten::relu(x), and whoever reads x afterwards reads that.
void replace_in_place(Block* block, const std::string& file) {
  static const std::set<std::string> known = {"aten::relu_",   "aten::add_",  "aten::sub_",        "aten::mul_",
                                              "aten::div_",    "aten::gelu_", "aten::silu_",       "aten::sigmoid_",
                                              "aten::tanh_",   "aten::elu_",  "aten::leaky_relu_", "aten::hardtanh_",
                                              "aten::dropout_"};
  for (auto it = block->nodes().begin(); it != block->nodes().end();) {
    Node* node = *it++;
    const std::string kind = node->kind().toQualString();
    if (!is_in_place(node)) continue;
    Value* changed = node->input(0);
    const bool viewed = std::any_of(changed->uses().begin(), changed->uses().end(),
                                    [&](const torch::jit::Use& use) { return is_view(use.user); });
    if (!known.contains(kind) || is_view(changed->node()) || viewed || changed->node()->kind() == c10::prim::GetAttr ||
        changed->node()->kind() == c10::prim::Param) {
      fail_user("{}: {} changes a tensor in place with {}, where others may see it; write it without the underscore",
                file, place_of(*node), kind);
    }
    Node* pure =
        node->owningGraph()->create(c10::Symbol::fromQualString(kind.substr(0, kind.size() - 1)), node->inputs(), 1);
    pure->insertBefore(node);
    pure->setSourceRange(node->sourceRange());
    if (node->callstack()) pure->setCallStack(*node->callstack());
    pure->output()->setType(node->output()->type());
    node->output()->replaceAllUsesWith(pure->output());
    changed->replaceAllUsesAfterNodeWith(node, pure->output());
    node->destroy();
  }
}

void require_form(const Graph& graph, const std::string& file) {
  const auto is_tensor = [](const Value* value) { return value->type()->isSubtypeOf(*c10::TensorType::get()); };
  if (graph.inputs().size() != 2 || !is_tensor(graph.inputs()[1])) {
    fail_user("{}: forward takes {} arguments, and must take one tensor, the records", file, graph.inputs().size() - 1);
  }
  if (graph.outputs().size() != 1 || !is_tensor(graph.outputs()[0])) {
    fail_user("{}: forward must give one tensor, the classes' logits", file);
  }
  for (const Node* node : graph.nodes()) {
    if (node->kind() == c10::prim::If || node->kind() == c10::prim::Loop) {
      fail_user(
          "{}: {} has control flow that depends on the records; torch.jit.trace writes down what is computed for one "
          "of "
          "them",
          file, place_of(*node));
    }
  }
}

}  // namespace

std::string place_of(const Node& node) {
  std::string path;
  if (node.callstack()) {
    for (const auto& [function, range, instance] : (*node.callstack())->vec()) {
      if (!instance || instance->instance_name().empty()) continue;
      const std::string name = instance->instance_name();
      path += (path.empty() ? "" : ".") + (name.starts_with("self.") ? name.substr(5) : name);
    }
  }
  if (!path.empty()) return fmt::format("the layer '{}'", path);
  if (const auto where = node.sourceRange().file_line_col()) {
    return fmt::format("line {} of {}", std::get<1>(*where), std::get<0>(*where));
  }
  return "forward";
}

ScriptArchive read_script(const std::filesystem::path& file) {
  torch::jit::Module module = load(file);
  module.eval();
  const auto forward = module.find_method("forward");
  if (!forward) fail_user("{}: its module has no forward", file.string());
  std::shared_ptr<Graph> graph = forward->graph()->copy();
  torch::jit::Inline(*graph);
  fix_attributes(module, graph->block());
  do {
    torch::jit::ConstantPropagation(graph);
    torch::jit::EliminateDeadCode(graph);
  } while (drop_checks(graph->block()));
  require_form(*graph, file.string());
  replace_in_place(graph->block(), file.string());
  torch::jit::EliminateDeadCode(graph);
  return {std::move(module), std::move(graph)};
}

}  // namespace sotto::models
