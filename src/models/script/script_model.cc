#include "models/script/script_model.h"

#include "base/error.h"
#include "base/random.h"
#include "models/script/archive.h"
#include "models/script/free_layers.h"
#include "models/script/opaque.h"
#include "models/script/operators.h"
#include "models/script/trial.h"
#include "models/weights/weight_store.h"

#include <ATen/ATen.h>
#include <torch/csrc/jit/ir/constants.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

namespace sotto::models {
namespace {

using torch::jit::IValue;
using torch::jit::Node;
using torch::jit::Stack;
using torch::jit::Value;

constexpr const char* kInStead = "write the model with linear, Conv2d, GroupNorm, LayerNorm and Embedding layers";
constexpr const char* kAsItIs =
    "as it is, the archive can give frozen features (data.features = FILE) and be trained by methods without privacy";

// One operator, or one use of a layer.
struct Operator {
  std::vector<size_t> inputs;
  std::vector<size_t> outputs;
  std::function<void(Stack&)> run;
  std::vector<size_t> last_uses = {};  // values that nobody needs afterwards
};

// The module's parameters, by their whole names. Of several names of one parameter the first counts.
std::map<const at::TensorImpl*, std::string> names_of(const torch::jit::Module& module) {
  std::map<const at::TensorImpl*, std::string> names;
  for (const auto& parameter : module.named_parameters()) {
    names.emplace(parameter.value.unsafeGetTensorImpl(), parameter.name);
  }
  return names;
}

std::string text_of(const IValue& value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

// Lists and tuples are made by the interpreter itself; everything else is an operator of libtorch. Nothing if it is not.
std::function<void(Stack&)> operation_of(const Node& node) {
  switch (node.kind()) {
    case c10::prim::ListConstruct:
      return [element = node.output()->type()->expect<c10::ListType>()->getElementType()](Stack& stack) {
        c10::impl::GenericList list(element);
        for (const IValue& value : stack) list.push_back(value);
        stack = {IValue(list)};
      };
    case c10::prim::ListUnpack:
      return [](Stack& stack) { stack = IValue(stack.front()).toListRef().vec(); };
    case c10::prim::TupleConstruct:
      return [](Stack& stack) { stack = {IValue(c10::ivalue::Tuple::create(Stack(stack)))}; };
    case c10::prim::TupleUnpack:
      return [](Stack& stack) { stack = Stack(IValue(stack.front()).toTuple()->elements().vec()); };
    case c10::prim::unchecked_cast:
      return [](Stack&) {};
    default:
      if (node.maybeOperator() == nullptr) return {};
      return [operation = node.getOperation()](Stack& stack) mutable { operation(stack); };
  }
}

class ScriptModel : public Model {
 public:
  ScriptModel(const std::filesystem::path& file, double dropout, at::Generator init)
      : file_(file.string()), dropout_(dropout), init_(std::move(init)) {
    archive_ = read_script(file);
    names_ = names_of(archive_.whole.module);
    register_buffers();
    slots_of_ = {{archive_.graph->inputs()[1], 0}};
    values_.resize(1);
    try {
      for (Node* node : archive_.graph->nodes()) take(*node);
    } catch (const c10::Error& error) {
      refuse(fmt::format("it cannot be rebuilt ({})", reason_of(error)));
    }
    find_head();
    keep_unused_parameters();
    forget_what_only_building_needs();
  }

  at::Tensor features(const at::Tensor& x) override {
    std::vector<IValue> values = values_;
    values[0] = x;
    Stack stack;
    for (const Operator& step : operators_) {
      stack.clear();
      for (const size_t input : step.inputs) stack.push_back(values[input]);
      step.run(stack);
      for (size_t i = 0; i < step.outputs.size(); ++i) values[step.outputs[i]] = std::move(stack[i]);
      for (const size_t last : step.last_uses) values[last] = IValue();
    }
    return values[head_input_].toTensor();
  }
  at::Tensor classify(const at::Tensor& features) override { return head_->forward(features); }
  int64_t feature_width() const override { return head_->weight.size(1); }
  std::string head_name() const override { return head_name_; }
  int64_t classes() const { return head_->weight.size(0); }
  // What the archive itself says of them.
  at::Tensor original(const at::Tensor& x) { return evaluate(archive_.whole, x.clone()); }

  // For people.
  std::string name_of(const Layer& layer) const {
    for (const auto& [name, own] : layers_) {
      if (own.get() == &layer) return name;
    }
    return "?";
  }

  ScriptLayers found() const {
    ScriptLayers found{.layers = {}, .operators = without_parameters_, .dropouts = dropouts_, .classes = classes()};
    for (const std::string& name : order_) found.layers.push_back(infos_.at(name));
    return found;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const { fail_user("{}: {}; {}", file_, what, kInStead); }

  // Parameters keep their names; so do buffers, which are constants here.
  void register_buffers() {
    for (const auto& buffer : archive_.whole.module.named_buffers()) {
      if (buffer.name.ends_with("num_batches_tracked") || buffer.name.find("running_") != std::string::npos) continue;
      const auto [owner, name] = owner_of(buffer.name);
      owner->register_buffer(name, buffer.value);
    }
  }

  std::pair<torch::nn::Module*, std::string> owner_of(const std::string& path) {
    const size_t dot = path.rfind('.');
    if (dot == path.npos) return {this, path};
    return {&submodule(*this, path.substr(0, dot)), path.substr(dot + 1)};
  }

  size_t slot_of(const Value* value) {
    const auto [place, is_new] = slots_of_.try_emplace(value, values_.size());
    if (is_new) values_.emplace_back();
    return place->second;
  }

  bool is_parameter(const Value* value) const { return parameters_.contains(value); }
  // Its whole name.
  std::string name_of(const Value* value) const { return names_.at(parameters_.at(value).unsafeGetTensorImpl()); }
  const at::Tensor& tensor_of(const Value* value) const { return parameters_.at(value); }
  bool is_none(const Value* value) const {
    return value->type()->kind() == c10::TypeKind::NoneType || is_none_constant(value);
  }
  static bool is_none_constant(const Value* value) {
    const auto constant = torch::jit::toIValue(value);
    return constant && constant->isNone();
  }

  template <typename T>
  T constant(const Node& node, size_t input) const {
    const auto value = torch::jit::toIValue(node.input(input));
    if (value) return value->to<T>();
    const Node* list = node.input(input)->node();
    if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
      if (list->kind() == c10::prim::ListConstruct) {
        std::vector<int64_t> numbers;
        for (const Value* element : list->inputs()) {
          const auto number = torch::jit::toIValue(element);
          if (!number || !number->isInt()) break;
          numbers.push_back(number->toInt());
        }
        if (numbers.size() == list->inputs().size()) return numbers;
      }
    }
    refuse(fmt::format("{} has sizes that depend on the records", place_of(node)));
  }

  void take(Node& node) {
    if (node.kind() == c10::prim::Constant) {
      values_[slot_of(node.output())] = *torch::jit::toIValue(node.output());
      return;
    }
    if (node.kind() == c10::prim::GetAttr) return take_attribute(node);
    const std::string kind = node.kind().toQualString();
    if (kind == "aten::linear" && is_parameter(node.input(1))) return take_linear(node);
    if ((kind == "aten::conv2d" || kind == "aten::_convolution") && is_parameter(node.input(1))) return take_conv(node);
    if (kind == "aten::group_norm" && is_parameter(node.input(2))) return take_group_norm(node);
    if (kind == "aten::layer_norm" && is_parameter(node.input(2))) return take_layer_norm(node);
    if (kind == "aten::batch_norm") return take_batch_norm(node);
    if (kind == "aten::embedding" && is_parameter(node.input(0))) return take_embedding(node);
    if (kind == "aten::add" && node.inputs().size() == 3 &&
        (is_parameter(node.input(0)) || is_parameter(node.input(1)))) {
      return take_positions(node);
    }
    if (kind == "aten::expand" && is_parameter(node.input(0))) return take_expanded(node);
    if (kind.starts_with("aten::") && kind.ends_with("dropout")) return take_dropout(node);
    take_operator(node, kind);
  }

  void take_attribute(const Node& node) {
    const IValue& owner = node.input(0)->node()->kind() == c10::prim::Param ? IValue(archive_.whole.module._ivalue())
                                                                            : values_[slot_of(node.input(0))];
    const IValue value = owner.toObject()->getAttr(node.s(c10::attr::name));
    values_[slot_of(node.output())] = value;
    if (!value.isTensor()) return;
    const at::Tensor tensor = value.toTensor();
    if (!names_.contains(tensor.unsafeGetTensorImpl())) return;
    if (tensor.scalar_type() != at::kFloat) {
      fail_user("{}: the parameter '{}' holds {} numbers; call model.float() before the archive is saved", file_,
                names_.at(tensor.unsafeGetTensorImpl()), c10::toString(tensor.scalar_type()));
    }
    parameters_.emplace(node.output(), tensor);
  }

  // A use of a layer but for what it is used on: its other parameters and its settings.
  std::string form_of(const Node& node, const Value* data) const {
    std::string form = node.kind().toQualString();
    for (const Value* input : node.inputs()) {
      if (input == data) continue;
      const auto constant = torch::jit::toIValue(input);
      form += '|';
      if (is_parameter(input)) {
        form += name_of(input);
      } else if (constant) {
        form += text_of(*constant);
      } else if (input->node()->kind() == c10::prim::ListConstruct) {
        for (const Value* element : input->node()->inputs()) {
          const auto number = torch::jit::toIValue(element);
          form += number ? text_of(*number) + ' ' : element->debugName();
        }
      } else {
        form += input->debugName();
      }
    }
    return form;
  }

  // The layer of this parameter, made on its first use. Its other uses must be of the same form.
  template <typename L, typename Make>
  std::shared_ptr<L> layer(const Node& node, const std::string& name, const char* kind, const std::string& form,
                           const Make& make) {
    const auto place = layers_.find(name);
    if (place != layers_.end()) {
      auto same = std::dynamic_pointer_cast<L>(place->second);
      if (!same) refuse(fmt::format("{} shares the parameter '{}' with a layer of another kind", place_of(node), name));
      if (forms_.at(name) != form) {
        refuse(fmt::format("{} uses '{}' a second time, with another bias or other settings", place_of(node), name));
      }
      ++infos_.at(name).uses;
      return same;
    }
    ScriptLayer info{.name = name, .kind = kind, .trained = false};
    std::shared_ptr<L> made = make(info);
    layers_.emplace(name, made);
    forms_.emplace(name, form);
    order_.push_back(name);
    infos_.emplace(name, info);
    return made;
  }

  // Registers a parameter under its own name, for a layer that does not.
  at::Tensor own(const Value* value, ScriptLayer& info) {
    if (is_none(value)) return {};
    if (!is_parameter(value)) refuse(fmt::format("a layer beside '{}' has a tensor that is no parameter", info.name));
    const std::string name = name_of(value);
    const at::Tensor& given = tensor_of(value);
    claim(name);
    auto [owner, own_name] = owner_of(name);
    at::Tensor registered = owner->register_parameter(own_name, given.detach().clone(), given.requires_grad());
    info.parameters += registered.numel();
    info.trained |= given.requires_grad();
    return registered;
  }

  // A parameter belongs to one layer.
  void claim(const std::string& name) {
    if (!registered_.insert(name).second) refuse(fmt::format("two layers share the parameter '{}'", name));
  }

  // Gives a layer of the usual names the archive's values.
  template <typename L>
  void fill(const Node& node, L& layer, const Value* weight, const Value* bias, ScriptLayer& info) {
    const at::NoGradGuard no_grad;
    const auto copy = [&](at::Tensor& to, const Value* from, const char* name) {
      if (!is_parameter(from) || name_of(from) != fmt::format("{}.{}", info.name, name)) {
        refuse(fmt::format("{}: its {} is not the parameter '{}.{}'", place_of(node), name, info.name, name));
      }
      if (to.sizes() != tensor_of(from).sizes()) {
        refuse(fmt::format("'{}.{}' is [{}], which the layer cannot be", info.name, name,
                           fmt::join(tensor_of(from).sizes(), ", ")));
      }
      claim(name_of(from));
      to.copy_(tensor_of(from));
      to.set_requires_grad(tensor_of(from).requires_grad());
      info.parameters += to.numel();
      info.trained |= tensor_of(from).requires_grad();
    };
    copy(layer.weight, weight, "weight");
    if constexpr (requires { layer.bias; }) {
      if (layer.bias.defined()) copy(layer.bias, bias, "bias");
    }
  }

  static std::string without(const std::string& name, std::string_view ending) {
    return name.ends_with(ending) ? name.substr(0, name.size() - ending.size()) : name;
  }

  void use(const Node& node, const Value* input, const std::shared_ptr<Layer>& layer) {
    operators_.push_back({.inputs = {slot_of(input)},
                          .outputs = {slot_of(node.output())},
                          .run = [layer](Stack& stack) { stack.front() = layer->forward(stack.front().toTensor()); }});
  }

  // A child without parameters of its own, so that whoever looks for layers finds it.
  template <typename L, typename... Args>
  std::shared_ptr<L> free_layer(Args&&... args) {
    return add<L>(*this, fmt::format("script.{}", layers_.size()), std::forward<Args>(args)...);
  }

  void take_linear(const Node& node) {
    const std::string name = without(name_of(node.input(1)), ".weight");
    const auto made = layer<FreeLinear>(node, name, "linear", form_of(node, node.input(0)), [&](ScriptLayer& info) {
      const at::Tensor weight = own(node.input(1), info);
      const at::Tensor bias = own(node.input(2), info);
      return free_layer<FreeLinear>(weight, bias);
    });
    linear_uses_[node.output()] = {name, made, slot_of(node.input(0))};
    use(node, node.input(0), made);
  }

  void take_conv(const Node& node) {
    const std::string name = without(name_of(node.input(1)), ".weight");
    const bool general = node.kind() == c10::Symbol::fromQualString("aten::_convolution");
    const at::Tensor& weight = tensor_of(node.input(1));
    const auto made = layer<Conv2d>(node, name, "Conv2d", form_of(node, node.input(0)), [&](ScriptLayer& info) {
      const auto stride = constant<std::vector<int64_t>>(node, 3), padding = constant<std::vector<int64_t>>(node, 4),
                 dilation = constant<std::vector<int64_t>>(node, 5);
      const auto groups = constant<int64_t>(node, general ? 8 : 6);
      const auto square = [](const std::vector<int64_t>& pair) {
        return std::all_of(pair.begin(), pair.end(), [&](int64_t one) { return one == pair.front(); });
      };
      if (weight.dim() != 4 || weight.size(2) != weight.size(3) || !square(stride) || !square(padding) ||
          !square(dilation) || dilation.front() != 1 || (general && constant<bool>(node, 6))) {
        refuse(
            fmt::format("the convolution '{}' is not one over images with square kernels, strides and padding and "
                        "without dilation",
                        name));
      }
      const Conv2d::Options options{.in = weight.size(1) * groups,
                                    .out = weight.size(0),
                                    .kernel = weight.size(2),
                                    .stride = stride.front(),
                                    .padding = padding.front(),
                                    .groups = groups,
                                    .bias = !is_none(node.input(2))};
      auto conv = add<Conv2d>(*this, name, options, init_);
      fill(node, *conv, node.input(1), node.input(2), info);
      return conv;
    });
    use(node, node.input(0), made);
  }

  void take_group_norm(const Node& node) {
    const std::string name = without(name_of(node.input(2)), ".weight");
    const auto made = layer<GroupNorm>(node, name, "GroupNorm", form_of(node, node.input(0)), [&](ScriptLayer& info) {
      if (constant<double>(node, 4) != GroupNorm::kEps) {
        refuse(fmt::format("the GroupNorm '{}' has eps {}, and {} is what there is", name, constant<double>(node, 4),
                           GroupNorm::kEps));
      }
      auto norm = add<GroupNorm>(*this, name, constant<int64_t>(node, 1), tensor_of(node.input(2)).size(0));
      fill(node, *norm, node.input(2), node.input(3), info);
      return norm;
    });
    use(node, node.input(0), made);
  }

  void take_layer_norm(const Node& node) {
    const std::string name = without(name_of(node.input(2)), ".weight");
    const auto made = layer<LayerNorm>(node, name, "LayerNorm", form_of(node, node.input(0)), [&](ScriptLayer& info) {
      if (tensor_of(node.input(2)).dim() != 1)
        refuse(fmt::format("the LayerNorm '{}' is over several dimensions", name));
      auto norm = add<LayerNorm>(*this, name, tensor_of(node.input(2)).size(0), constant<double>(node, 4));
      fill(node, *norm, node.input(2), node.input(3), info);
      return norm;
    });
    use(node, node.input(0), made);
  }

  [[noreturn]] void take_batch_norm(const Node& node) {
    fail_user(
        "{}: {} is a BatchNorm, which mixes the records of a batch, so that no record's influence can be bounded; use "
        "torch.nn.GroupNorm in its place",
        file_, place_of(node));
  }

  void take_embedding(const Node& node) {
    const std::string name = without(name_of(node.input(0)), ".weight");
    const auto made = layer<Embedding>(node, name, "Embedding", form_of(node, node.input(1)), [&](ScriptLayer& info) {
      if (constant<int64_t>(node, 2) >= 0) {
        refuse(fmt::format("the Embedding '{}' has a padding_idx, whose row is never trained", name));
      }
      const at::Tensor& weight = tensor_of(node.input(0));
      auto table = add<Embedding>(*this, name, weight.size(0), weight.size(1), init_);
      fill(node, *table, node.input(0), nullptr, info);
      return table;
    });
    use(node, node.input(1), made);
  }

  std::shared_ptr<FreePositions> positions(const Node& node, const Value* parameter) {
    const std::string name = name_of(parameter);
    const at::Tensor& weight = tensor_of(parameter);
    if (weight.dim() != 3 || weight.size(0) != 1) {
      refuse(fmt::format("the parameter '{}' [{}] is added outside of a layer, which is known for shapes [1, n, width]",
                         name, fmt::join(weight.sizes(), ", ")));
    }
    auto made = layer<FreePositions>(node, name, "positions", "", [&](ScriptLayer& info) {
      const at::Tensor registered = own(parameter, info);
      return free_layer<FreePositions>(registered);
    });
    return made;
  }

  // x + learned positions.
  void take_positions(const Node& node) {
    const size_t parameter = is_parameter(node.input(0)) ? 0 : 1;
    const Value* other = node.input(1 - parameter);
    const auto factor = torch::jit::toIValue(node.input(2));
    if (is_parameter(other) || !factor || factor->toScalar().toDouble() != 1) {
      refuse(fmt::format("the parameter '{}' is added outside of a layer", name_of(node.input(parameter))));
    }
    use(node, other, positions(node, node.input(parameter)));
  }

  // A learned token for every record: as positions that are added to nothing.
  void take_expanded(const Node& node) {
    const auto made = positions(node, node.input(0));
    operators_.push_back(
        {.inputs = {slot_of(node.input(1))}, .outputs = {slot_of(node.output())}, .run = [made](Stack& stack) {
           std::vector<int64_t> sizes = stack.front().toIntVector();
           for (size_t i = 0; i < sizes.size(); ++i) {
             if (sizes[i] < 0) sizes[i] = made->weight.size(static_cast<int64_t>(i));
           }
           stack.front() = made->forward(at::zeros(sizes));
         }});
  }

  // model.dropout says how much, as for any other model.
  void take_dropout(const Node& node) {
    ++dropouts_;
    const size_t input = slot_of(node.input(0)), output = slot_of(node.output());
    if (dropout_ == 0) {
      operators_.push_back({.inputs = {input}, .outputs = {output}, .run = [](Stack&) {}});
      return;
    }
    if (node.kind() != c10::Symbol::fromQualString("aten::dropout")) {
      fail_user("{}: {} drops whole channels or shifts what it keeps, which is not known here; set model.dropout = 0",
                file_, place_of(node));
    }
    const auto made = add<Dropout>(*this, fmt::format("script.dropout{}", dropouts_), dropout_, generator_);
    operators_.push_back({.inputs = {input}, .outputs = {output}, .run = [made](Stack& stack) {
                            stack.front() = made->forward(stack.front().toTensor());
                          }});
  }

  void take_operator(Node& node, const std::string& kind) {
    for (const Value* input : node.inputs()) {
      if (is_parameter(input)) {
        const bool in_list = node.kind() == c10::prim::ListConstruct && node.hasUses();
        const Node& user = in_list ? *node.output()->uses().front().user : node;
        refuse(fmt::format("{} uses the parameter '{}' in {}, which has no per-example form here", place_of(node),
                           name_of(input), user.kind().toQualString()));
      }
    }
    if (!is_known_operator(kind))
      refuse(fmt::format("{} has the operator {}, which is not known here", place_of(node), kind));
    Operator step{.inputs = {}, .outputs = {}, .run = {}};
    for (const Value* input : node.inputs()) step.inputs.push_back(slot_of(input));
    for (const Value* output : node.outputs()) step.outputs.push_back(slot_of(output));
    step.run = operation_of(node);
    if (!step.run) refuse(fmt::format("{} has the operator {} in a form that is not known here", place_of(node), kind));
    operators_.push_back(std::move(step));
    without_parameters_ += kind.starts_with("aten::") ? 1 : 0;
  }

  // The linear layer that gives the logits; a log-softmax behind it changes neither losses nor predictions.
  void find_head() {
    const Value* output = archive_.graph->outputs()[0];
    if (output->node()->kind() == c10::Symbol::fromQualString("aten::log_softmax")) {
      output = output->node()->input(0);
      operators_.pop_back();
    }
    const auto found = linear_uses_.find(output);
    if (found == linear_uses_.end() || infos_.at(found->second.name).uses != 1) {
      fail_user("{}: what forward gives must come from a linear layer of its own, the classifier; it ends in {}", file_,
                output->node()->kind().toQualString());
    }
    head_name_ = found->second.name;
    head_ = found->second.layer;
    head_input_ = found->second.input;
    operators_.pop_back();
  }

  // Frozen: nothing that forward does depends on them, and whoever loads an export expects them.
  void keep_unused_parameters() {
    for (const auto& parameter : archive_.whole.module.named_parameters()) {
      if (names_.at(parameter.value.unsafeGetTensorImpl()) != parameter.name || registered_.contains(parameter.name)) {
        continue;
      }
      const auto [owner, name] = owner_of(parameter.name);
      owner->register_parameter(name, parameter.value.detach().clone(), false);
      order_.push_back(parameter.name);
      infos_.emplace(parameter.name, ScriptLayer{.name = parameter.name,
                                                 .kind = "not used",
                                                 .parameters = parameter.value.numel(),
                                                 .uses = 0,
                                                 .trained = false});
    }
  }

  void forget_what_only_building_needs() {
    std::map<size_t, size_t> last;  // value → operator
    for (size_t i = 0; i < operators_.size(); ++i) {
      for (const size_t input : operators_[i].inputs) last[input] = i;
    }
    for (const auto& [value, place] : last) {
      if (value != head_input_ && values_[value].isNone()) operators_[place].last_uses.push_back(value);
    }
    slots_of_.clear();
    parameters_.clear();
    linear_uses_.clear();
  }

  struct LinearUse {
    std::string name;
    std::shared_ptr<FreeLinear> layer;
    size_t input = 0;
  };

  std::string file_;
  double dropout_;
  at::Generator init_;
  ScriptArchive archive_;
  std::map<const at::TensorImpl*, std::string> names_;  // of the archive's parameters
  std::map<const Value*, size_t> slots_of_;
  std::map<const Value*, at::Tensor> parameters_;
  std::vector<IValue> values_;  // constants, and room for what is computed
  std::vector<Operator> operators_;
  std::map<std::string, std::shared_ptr<Layer>> layers_;
  std::map<std::string, std::string> forms_;
  std::map<std::string, ScriptLayer> infos_;
  std::set<std::string> registered_;  // parameters that are a layer's
  std::vector<std::string> order_;
  std::map<const Value*, LinearUse> linear_uses_;
  int64_t without_parameters_ = 0;
  int64_t dropouts_ = 0;
  std::string head_name_;
  std::shared_ptr<FreeLinear> head_;
  size_t head_input_ = 0;
};

// Clipping goes by the first dimension of what layers see.
class RecordsComeFirst : public LayerObserver {
 public:
  RecordsComeFirst(const ScriptModel& model, int64_t records, const std::string& file)
      : model_(model), records_(records), file_(file) {}

  at::Tensor on_forward(Layer& layer, const at::Tensor& input, const at::Tensor& output) override {
    const auto is_first = [&](const at::Tensor& tensor) { return tensor.dim() > 0 && tensor.size(0) == records_; };
    if (!is_first(input) || !is_first(output)) {
      fail_user(
          "{}: the layer '{}' gets [{}] for {} records, and records must be its first dimension (torch.nn's "
          "MultiheadAttention puts them second: write attention with linear layers)",
          file_, model_.name_of(layer), fmt::join(input.sizes(), ", "), records_);
    }
    return output;
  }

 private:
  const ScriptModel& model_;
  int64_t records_;
  const std::string& file_;
};

// Whether it reads such records, in batches of any size, and keeps them apart.
void try_out(ScriptModel& model, const Task& task, const std::string& file) {
  const at::NoGradGuard no_grad;
  model.eval();
  const at::Tensor records = made_up_records(task, 5);
  const auto logits = [&](const at::Tensor& x) {
    RecordsComeFirst observer(model, x.size(0), file);
    const ObserveLayers observed(observer);
    try {
      return model.logits(x);
    } catch (const UserError&) {
      throw;
    } catch (const std::exception& error) {
      fail_user("{}: it cannot read {} records of the shape [{}]: {}", file, x.size(0),
                fmt::join(task.record_shape, ", "), reason_of(error));
    }
  };
  // A log-softmax behind the classifier is left out here.
  const auto as_the_archive = [&](const at::Tensor& x, const at::Tensor& rebuilt) {
    at::Tensor given;
    try {
      given = model.original(x);
    } catch (const std::exception& error) {
      fail_user("{}: the archive itself fails on {} records of the shape [{}]: {}", file, x.size(0),
                fmt::join(task.record_shape, ", "), reason_of(error));
    }
    return given.sizes() == rebuilt.sizes() &&
           at::allclose(at::log_softmax(given.to(at::kFloat), -1), at::log_softmax(rebuilt, -1), 1e-3, 1e-4, true);
  };
  const at::Tensor all = logits(records);
  if (all.dim() != 2 || all.size(0) != records.size(0)) {
    fail_user("{}: for 5 records it gives [{}], and must give logits [5, classes]: the first dimension is the records",
              file, fmt::join(all.sizes(), ", "));
  }
  for (const int64_t count : {1, 3}) {
    const at::Tensor some = logits(records.narrow(0, 0, count));
    if (some.sizes() != all.narrow(0, 0, count).sizes() || !at::allclose(some, all.narrow(0, 0, count), 1e-3, 1e-4)) {
      fail_user("{}: what it says of a record depends on which others are in the batch: nothing bounds one record then",
                file);
    }
  }
  if (!as_the_archive(records, all)) {
    fail_user("{}: rebuilt layer by layer it says something else than the archive itself; {}", file, kInStead);
  }
}

// Runs `work`; its refusal says what the archive is good for all the same.
template <typename Work>
auto with_advice(const std::filesystem::path& file, const Work& work) {
  try {
    return work();
  } catch (const UserError& error) {
    if (!can_run_as_it_is(file)) throw;
    fail_user("{}; {}", error.what(), kAsItIs);
  }
}

std::shared_ptr<ScriptModel> rebuilt(const Blueprint& blueprint, const std::filesystem::path& file) {
  auto model = std::make_shared<ScriptModel>(file, blueprint.options.dropout, blueprint.init);
  if (model->classes() != blueprint.task.classes) {
    fail_user("{}: it tells {} classes apart, and the records have {}; give its last layer as many outputs",
              file.string(), model->classes(), blueprint.task.classes);
  }
  try_out(*model, blueprint.task, file.string());
  model->train();
  return model;
}

}  // namespace

ScriptLayers inspect_script(const std::filesystem::path& file) {
  RandomStream init(1, "script-init");
  return with_advice(file, [&] { return std::make_shared<ScriptModel>(file, 0.0, init.torch_generator())->found(); });
}

NamedTensors with_all_names(NamedTensors weights, const std::filesystem::path& file) {
  const torch::jit::Module module = read_whole_script(file).module;
  const auto names = names_of(module);
  for (const auto& parameter : module.named_parameters()) {
    const at::Tensor value = find_tensor(weights, names.at(parameter.value.unsafeGetTensorImpl()));
    if (value.defined() && !find_tensor(weights, parameter.name).defined()) weights.push_back({parameter.name, value});
  }
  return weights;
}

std::shared_ptr<Model> make_script_model(const Blueprint& blueprint) {
  if (blueprint.options.weights.empty()) {
    fail_user("model 'torchscript' is what an archive says: set model.weights to the file");
  }
  const std::filesystem::path file = find_weights(blueprint.options.weights);
  if (!blueprint.may_be_opaque) return with_advice(file, [&] { return rebuilt(blueprint, file); });
  try {
    return rebuilt(blueprint, file);
  } catch (const UserError& error) {
    return make_opaque_model(blueprint, file, error.what());
  }
}

}  // namespace sotto::models
