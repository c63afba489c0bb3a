#include "models/script/archive.h"

#include "base/error.h"
#include "base/text.h"

#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/passes/constant_propagation.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/passes/loop_unrolling.h>
#include <torch/csrc/jit/passes/lower_graph.h>
#include <torch/csrc/jit/runtime/interpreter.h>
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

constexpr double kMostNodes = 1e5;
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

// Takes out all dropout, or what is off in every mode: the rest is for whoever trains.
void drop_dropout(Block* block, bool all) {
  static const std::set<std::string> kinds = {
      "aten::dropout",         "aten::dropout_",         "aten::alpha_dropout",         "aten::alpha_dropout_",
      "aten::feature_dropout", "aten::feature_dropout_", "aten::feature_alpha_dropout", "aten::feature_alpha_dropout_"};
  for (auto it = block->nodes().begin(); it != block->nodes().end();) {
    Node* node = *it++;
    for (Block* inner : node->blocks()) drop_dropout(inner, all);
    if (!kinds.contains(node->kind().toQualString())) continue;
    const auto probability = torch::jit::toIValue(node->input(1)), on = torch::jit::toIValue(node->input(2));
    if (all || (on && !on->toBool()) || (probability && probability->toDouble() == 0)) {
      node->output()->replaceAllUsesWith(node->input(0));
      node->destroy();
    }
  }
}

// How many nodes there would be without loops of a known length.
double unrolled_size(const Block* block) {
  double size = 0;
  for (const Node* node : block->nodes()) {
    ++size;
    double times = 1;
    if (node->kind() == c10::prim::Loop) {
      const auto trips = torch::jit::toIValue(node->input(0)), first = torch::jit::toIValue(node->input(1)),
                 next = torch::jit::toIValue(node->blocks()[0]->outputs()[0]);
      if (trips && first && next) times = std::max(1.0, static_cast<double>(trips->toInt()));
    }
    for (const Block* inner : node->blocks()) size += times * unrolled_size(inner);
  }
  return size;
}

bool only_raises(const Block* block) {
  return std::any_of(block->nodes().begin(), block->nodes().end(),
                     [](const Node* node) { return node->kind() == c10::prim::RaiseException; });
}

bool writes(const Node* node) {
  const torch::jit::FunctionSchema* schema = node->maybeSchema();
  return node->kind() == c10::prim::SetAttr || (schema != nullptr && schema->is_mutable());
}

// aten::relu_ and the like, and those that write to `out`. A list that forward makes itself may grow.
bool changes_tensors(const Node* node) {
  return writes(node) &&
         !(node->kind() == c10::aten::append && node->input(0)->node()->kind() == c10::prim::ListConstruct);
}

// A loop over sizes whose result only a check wanted.
bool is_idle(const Node* node) {
  return node->kind() == c10::prim::Loop && !node->hasUses() &&
         std::none_of(node->blocks()[0]->nodes().begin(), node->blocks()[0]->nodes().end(), [](const Node* inner) {
           return inner->hasSideEffects() || !inner->blocks().empty() || writes(inner);
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

// Operators whose result is memory of its own, whatever they are given.
bool is_fresh(const Node* node) {
  static const std::set<std::string> fresh = {"aten::linear",
                                              "aten::conv2d",
                                              "aten::_convolution",
                                              "aten::group_norm",
                                              "aten::layer_norm",
                                              "aten::batch_norm",
                                              "aten::embedding",
                                              "aten::matmul",
                                              "aten::bmm",
                                              "aten::baddbmm",
                                              "aten::add",
                                              "aten::sub",
                                              "aten::rsub",
                                              "aten::mul",
                                              "aten::div",
                                              "aten::relu",
                                              "aten::relu6",
                                              "aten::gelu",
                                              "aten::silu",
                                              "aten::sigmoid",
                                              "aten::tanh",
                                              "aten::elu",
                                              "aten::selu",
                                              "aten::celu",
                                              "aten::leaky_relu",
                                              "aten::hardtanh",
                                              "aten::hardswish",
                                              "aten::hardsigmoid",
                                              "aten::mish",
                                              "aten::softplus",
                                              "aten::softmax",
                                              "aten::log_softmax",
                                              "aten::clamp",
                                              "aten::clamp_min",
                                              "aten::exp",
                                              "aten::log",
                                              "aten::sqrt",
                                              "aten::rsqrt",
                                              "aten::pow",
                                              "aten::neg",
                                              "aten::abs",
                                              "aten::mean",
                                              "aten::sum",
                                              "aten::amax",
                                              "aten::masked_fill",
                                              "aten::max_pool2d",
                                              "aten::avg_pool2d",
                                              "aten::adaptive_avg_pool2d",
                                              "aten::cat",
                                              "aten::stack",
                                              "aten::upsample_nearest2d",
                                              "aten::upsample_bilinear2d",
                                              "aten::zeros",
                                              "aten::zeros_like",
                                              "aten::ones_like"};
  return fresh.contains(node->kind().toQualString());
}

// Operators whose result is the one tensor they are made of, or a part of it.
bool is_part(const Node* node) {
  static const std::set<std::string> parts = {"aten::view",    "aten::reshape",    "aten::flatten", "aten::transpose",
                                              "aten::permute", "aten::t",          "aten::select",  "aten::slice",
                                              "aten::narrow",  "aten::unsqueeze",  "aten::squeeze", "aten::detach",
                                              "aten::alias",   "aten::contiguous", "aten::dropout"};
  return parts.contains(node->kind().toQualString());
}

bool may_hold_tensors(const Value* value) {
  switch (value->type()->kind()) {
    case c10::TypeKind::IntType:
    case c10::TypeKind::FloatType:
    case c10::TypeKind::BoolType:
    case c10::TypeKind::NoneType:
    case c10::TypeKind::StringType:
    case c10::TypeKind::DeviceObjType:
      return false;
    case c10::TypeKind::ListType:
      return value->type()->expectRef<c10::ListType>().getElementType()->kind() == c10::TypeKind::TensorType;
    default:
      return true;
  }
}

// Whether this value is the only way to its memory.
bool is_alone(const Value* value) {
  const Node* maker = value->node();
  if (is_fresh(maker)) return true;
  return is_part(maker) && std::all_of(maker->inputs().begin(), maker->inputs().end(), [](const Value* input) {
           return !may_hold_tensors(input) || (input->uses().size() == 1 && is_alone(input));
         });
}

// Whether something made before `node` may still see the value's memory.
bool is_seen(const Value* value, const Node* node) {
  return std::any_of(value->uses().begin(), value->uses().end(), [&](const torch::jit::Use& use) {
    return use.user != node && use.user->isBefore(node) && !is_fresh(use.user) &&
           std::any_of(use.user->outputs().begin(), use.user->outputs().end(), may_hold_tensors);
  });
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
    if (!changes_tensors(node)) continue;
    if (!known.contains(kind) || !is_alone(node->input(0)) || is_seen(node->input(0), node)) {
      fail_user("{}: {} changes a tensor in place with {}, where others may see it; write it without the underscore",
                file, place_of(*node), kind);
    }
    Value* changed = node->input(0);
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
    fail_user("{}: forward must give one tensor: the classes' logits, or features", file);
  }
}

void require_no_branches(const Graph& graph, const std::string& file) {
  for (const Node* node : graph.nodes()) {
    if (node->kind() == c10::prim::If || node->kind() == c10::prim::Loop) {
      fail_user(
          "{}: {} has control flow that depends on the records, or is too long; torch.jit.trace writes down what is "
          "computed for one "
          "of them",
          file, place_of(*node));
    }
  }
}

std::shared_ptr<Graph> inlined_forward(const torch::jit::Module& module, const std::string& file) {
  const auto forward = module.find_method("forward");
  if (!forward) fail_user("{}: its module has no forward", file);
  std::shared_ptr<Graph> graph = forward->graph()->copy();
  torch::jit::Inline(*graph);
  require_form(*graph, file);
  return graph;
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
  std::shared_ptr<Graph> graph = inlined_forward(module, file.string());
  drop_dropout(graph->block(), false);
  std::shared_ptr<Graph> original = graph->copy();
  drop_dropout(original->block(), true);
  fix_attributes(module, graph->block());
  do {
    torch::jit::ConstantPropagation(graph);
    if (unrolled_size(graph->block()) <= kMostNodes) torch::jit::UnrollConstantLoops(graph);
    torch::jit::ConstantPropagation(graph);
    torch::jit::EliminateDeadCode(graph);
  } while (drop_checks(graph->block()));
  require_no_branches(*graph, file.string());
  replace_in_place(graph->block(), file.string());
  torch::jit::EliminateDeadCode(graph);
  return {{module, std::move(original)}, std::move(graph)};
}

WholeScript read_whole_script(const std::filesystem::path& file) {
  torch::jit::Module module = load(file);
  module.eval();
  std::shared_ptr<Graph> graph = inlined_forward(module, file.string());
  drop_dropout(graph->block(), true);
  return {module, std::move(graph)};
}

at::Tensor evaluate(const WholeScript& script, const at::Tensor& x) {
  const torch::jit::Code code(script.graph, "forward");
  torch::jit::Stack stack = {script.module._ivalue(), x};
  torch::jit::InterpreterState(code).run(stack);
  return stack.at(0).toTensor();
}

bool is_script(const std::filesystem::path& file) {
  try {
    return caffe2::serialize::PyTorchStreamReader(file.string()).hasRecord("constants.pkl");
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace sotto::models
