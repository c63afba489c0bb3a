// Models rebuilt from TorchScript archives: what the archive computes, and the loop over single examples.
#include "../../support/expect_user_error.h"
#include "../../support/script_archives.h"
#include "models/catalogue.h"
#include "models/flat.h"
#include "models/script/opaque.h"
#include "models/script/script_model.h"
#include "reference.h"

#include <torch/csrc/autograd/autograd.h>

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>

namespace sotto::privacy {
namespace {

using namespace scripts;

class Script : public ::testing::Test {
 protected:
  Script() : file_(::testing::TempDir() + "sotto-script-" + std::to_string(::getpid()) + ".pt") { at::manual_seed(3); }
  ~Script() override { std::filesystem::remove(file_); }

  Case rebuilt(const Module& module, const models::Task& task, int64_t batch) {
    saved(module, file_);
    models::ModelOptions options;
    options.name = "torchscript";
    options.weights = file_.string();
    return make_case(options, task, batch);
  }
  models::ScriptLayers inspected(const Module& module) { return models::inspect_script(saved(module, file_)); }

  // The archive's own output, names and per-example gradients.
  void expect_exact(Module module, const models::Task& task, int64_t batch) {
    Case c = rebuilt(module, task, batch);
    const at::Tensor logits = c.model->logits(c.x);
    const at::Tensor given = module.forward({c.x}).toTensor();
    EXPECT_TRUE(at::allclose(at::log_softmax(logits, 1), at::log_softmax(given, 1), 1e-4, 1e-5));

    std::set<std::string> names, given_names;
    for (const auto& [name, value] : c.model->state()) names.insert(name);
    for (const auto& parameter : module.named_parameters()) given_names.insert(parameter.name);
    EXPECT_EQ(names, given_names);

    // By autograd through the archive itself, without anything of ours.
    at::Tensor expected_rows = at::empty({batch, c.flat.values().numel()});
    std::vector<at::Tensor> parameters;
    for (const auto& [name, value] : c.model->shared_parameters()) parameters.push_back(parameter_of(module, name));
    for (int64_t i = 0; i < batch; ++i) {
      const at::Tensor loss =
          at::cross_entropy_loss(module.forward({c.x.narrow(0, i, 1)}).toTensor(), c.y.narrow(0, i, 1));
      const auto gradients = torch::autograd::grad({loss}, parameters);
      std::vector<at::Tensor> flat;
      for (const at::Tensor& gradient : gradients) flat.push_back(gradient.flatten());
      expected_rows[i] = at::cat(flat);
    }
    const at::Tensor norms = norms_of(expected_rows);
    const double bound = middle(norms);
    PerExampleClipper clipper(*c.model, c.flat, {.bound = bound, .usual_batch = batch});
    const ClippedSum result = clipper.sum(c.x, c.y);
    std::string worst;
    EXPECT_LT(difference(c, clipped_sum(expected_rows, bound), &worst), 2e-5) << worst;
    EXPECT_TRUE(at::allclose(result.norms[0], norms, 1e-4, 1e-9)) << result.norms[0] << norms;
    EXPECT_EQ(result.non_finite, 0);
  }

  static at::Tensor parameter_of(const Module& module, const std::string& name) {
    for (const auto& parameter : module.named_parameters()) {
      if (parameter.name == name) return parameter.value;
    }
    ADD_FAILURE() << name;
    return {};
  }

  std::filesystem::path file_;
};

TEST_F(Script, ResNetWithGroupNormIsExact) {
  expect_exact(resnet(), {{3, 8, 8}, 5}, 6);
}

TEST_F(Script, VisionTransformerIsExact) {
  expect_exact(vit(), {{3, 8, 8}, 5}, 6);
}

TEST_F(Script, TextClassifierIsExact) {
  expect_exact(text(), {{6}, 4, true}, 8);
}

TEST_F(Script, SkipSumsAreExact) {
  expect_exact(unet(), {{1, 8, 8}, 5}, 7);
}

TEST_F(Script, SharedLayersAreExact) {
  expect_exact(shared_mlp(), {{7}, 3}, 9);
}

TEST_F(Script, SaysWhatItFound) {
  const models::ScriptLayers found = inspected(shared_mlp());
  ASSERT_EQ(found.layers.size(), 3u);
  EXPECT_EQ(found.layers[1].name, "again");
  EXPECT_EQ(found.layers[1].kind, "linear");
  EXPECT_EQ(found.layers[1].uses, 2);
  EXPECT_EQ(found.layers[1].parameters, 81);
  EXPECT_EQ(found.classes, 3);
}

TEST_F(Script, FrozenParametersStayFrozen) {
  Module module = shared_mlp();
  for (const auto& parameter : module.attr("first").toModule().parameters())
    at::Tensor(parameter).set_requires_grad(false);
  Case c = rebuilt(module, {{7}, 3}, 4);
  std::vector<std::string> names;
  for (const auto& [name, value] : c.model->shared_parameters()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"again.weight", "head.weight", "head.bias"}));
  PerExampleClipper clipper(*c.model, c.flat, {.bound = 1, .usual_batch = 4});
  EXPECT_GT(clipper.sum(c.x, c.y).norms.min().item<double>(), 0);
  EXPECT_FALSE(inspected(module).layers[0].trained);
}

TEST_F(Script, NamesWhatItCannotTake) {
  const Module lstm = module_of("Lstm", {{"head", linear(4, 3)}}, {{"w_ih", drawn({16, 7})}, {"w_hh", drawn({16, 4})}},
                                "  h = torch.zeros([x.size(0), 4])\n"
                                "  h, c = torch.lstm_cell(x, [h, h], self.w_ih, self.w_hh, None, None)\n"
                                "  return self.head(h)\n");
  EXPECT_USER_ERROR(inspected(lstm), "'w_ih' in aten::lstm_cell, which has no per-example form");
  const Module norm =
      module_of("BatchNorm", {}, {{"weight", drawn({7})}, {"bias", drawn({7})}},
                "  return torch.batch_norm(x, self.weight, self.bias, None, None, True, 0.1, 1e-05, False)\n");
  EXPECT_USER_ERROR(
      inspected(module_of("Net", {{"bn", norm}, {"head", linear(7, 3)}}, {}, "  return self.head(self.bn(x))\n")),
      "'bn' is a BatchNorm, which mixes the records of a batch");
  EXPECT_USER_ERROR(
      inspected(module_of("Net", {{"head", linear(7, 3)}}, {}, "  return self.head(torch.fft_fft(x).abs())\n")),
      "operator aten::fft_fft");
  EXPECT_USER_ERROR(inspected(module_of("Net", {{"head", linear(7, 3)}}, {},
                                        "  if bool(x.sum() > 0):\n    x = -x\n  return self.head(x)\n")),
                    "control flow that depends on the records");
  EXPECT_USER_ERROR(inspected(module_of(
                        "Net", {{"head", linear(7, 3)}}, {},
                        "  y = torch.relu(x)\n  z = torch.slice(y, 1, 0, 3, 1)\n  z.mul_(2)\n  return self.head(y)\n")),
                    "in place");
  EXPECT_USER_ERROR(inspected(module_of("Net", {{"head", linear(7, 3)}}, {}, "  return torch.relu(self.head(x))\n")),
                    "the classifier; it ends in aten::relu");
  Module half = shared_mlp();
  half.to(at::kHalf);
  EXPECT_USER_ERROR(inspected(half), "holds Half numbers; call model.float()");
}

TEST_F(Script, UsesOfOneWeightMustBeAlike) {
  const auto inner = [](const std::string& body) {
    return module_of("Net", {{"head", linear(8, 3)}},
                     {{"w", drawn({8, 8})}, {"b", drawn({8})}, {"c", drawn({8})}, {"norm", 1 + drawn({8})}},
                     body + "  return self.head(y)\n");
  };
  EXPECT_USER_ERROR(inspected(inner("  y = torch.linear(torch.linear(x, self.w, self.b), self.w, self.c)\n")),
                    "uses 'w' a second time, with another bias or other settings");
  EXPECT_USER_ERROR(inspected(inner("  y = torch.linear(torch.linear(x, self.w, self.b), self.w, None)\n")),
                    "uses 'w' a second time");
  const Module twice = module_of("Twice", {}, {{"weight", drawn({3, 3, 3, 3})}},
                                 "  y = torch.conv2d(x, self.weight, None, [1, 1], [1, 1], [1, 1], 1)\n"
                                 "  return torch.conv2d(y, self.weight, None, [2, 2], [1, 1], [1, 1], 1)\n");
  EXPECT_USER_ERROR(inspected(module_of("Net", {{"conv", twice}, {"head", linear(3, 3)}}, {},
                                        "  return self.head(self.conv(x).mean([2, 3]))\n")),
                    "uses 'conv' a second time");
  const Module norms = module_of("Norms", {}, {{"weight", 1 + drawn({8})}, {"bias", drawn({8})}},
                                 "  y = torch.group_norm(x, 2, self.weight, self.bias, 1e-05, True)\n"
                                 "  return torch.group_norm(y, 4, self.weight, self.bias, 1e-05, True)\n");
  EXPECT_USER_ERROR(
      inspected(module_of("Net", {{"norm", norms}, {"head", linear(8, 3)}}, {}, "  return self.head(self.norm(x))\n")),
      "uses 'norm' a second time");
  EXPECT_USER_ERROR(
      inspected(module_of("Net", {{"head", linear(8, 3)}},
                          {{"w", drawn({8, 8})}, {"v", drawn({8, 8})}, {"b", drawn({8})}},
                          "  return self.head(torch.linear(torch.linear(x, self.w, self.b), self.v, self.b))\n")),
      "two layers share the parameter 'b'");
}

// Whoever else can see the memory would see the change.
TEST_F(Script, ChangesInPlaceMustBeUnseen) {
  const auto net = [](const std::string& body) {
    return module_of("Net", {{"first", linear(8, 8)}, {"head", linear(8, 3)}}, {}, "  y = self.first(x)\n" + body);
  };
  for (const char* seen :
       {"  a, b = torch.chunk(y, 2, 1)\n  a.mul_(0)\n  return self.head(y)\n",
        "  a, b = torch.split(y, [4, 4], 1)\n  a.mul_(0)\n  return self.head(y)\n",
        "  a = torch.chunk(y, 2, 1)[0]\n  a.mul_(0)\n  return self.head(y)\n",
        "  a = y.to(6)\n  a.mul_(0)\n  return self.head(y)\n", "  a = y.float()\n  a.mul_(0)\n  return self.head(y)\n",
        "  a = torch.alias(y)\n  a.mul_(0)\n  return self.head(y)\n",
        "  a = torch.alias(y)\n  y.mul_(0)\n  return self.head(a)\n",
        "  a = y.view([-1, 8])\n  y.mul_(0)\n  return self.head(a)\n",
        "  a = [y]\n  y.mul_(0)\n  return self.head(a[0])\n",
        "  a = y.unsqueeze(1).expand([-1, 2, -1])\n  b, c = a.unbind(1)\n  b.mul_(0)\n  return self.head(c)\n",
        "  x.mul_(0)\n  return self.head(y + x)\n", "  a = torch.mul(x, 2, out=y)\n  return self.head(y)\n"}) {
    SCOPED_TRACE(seen);
    EXPECT_USER_ERROR(inspected(net(seen)), "changes a tensor in place with");
  }
  for (const char* unseen : {"  z = torch.relu(y)\n  y.mul_(2)\n  return self.head(y + z)\n",
                             "  z = y.view([-1, 2, 4])\n  z.relu_()\n  return self.head(z.flatten(1))\n",
                             "  y.relu_()\n  return self.head(y.view([-1, 8]))\n"}) {
    SCOPED_TRACE(unseen);
    expect_exact(net(unseen), {{8}, 3}, 6);
  }
}

// A log-softmax over records is not the one that may be left out.
TEST_F(Script, IsComparedWithTheArchive) {
  EXPECT_USER_ERROR(rebuilt(module_of("Net", {{"first", linear(8, 8)}, {"head", linear(8, 3)}}, {},
                                      "  return torch.log_softmax(self.head(self.first(x)), 0)\n"),
                            {{8}, 3}, 4),
                    "says something else than the archive");
}

TEST_F(Script, LoopsOfAKnownLengthAreExact) {
  expect_exact(module_of("Net", {{"again", linear(7, 7)}, {"head", linear(7, 3)}}, {},
                         "  for i in range(3):\n    x = torch.relu(self.again(x)) + i\n  return self.head(x)\n"),
               {{7}, 3}, 6);
  EXPECT_EQ(inspected(module_of("Net", {{"again", linear(7, 7)}, {"head", linear(7, 3)}}, {},
                                "  for i in range(2):\n    for j in range(2):\n      x = self.again(x)\n"
                                "  return self.head(x)\n"))
                .layers[0]
                .uses,
            4);
}

TEST_F(Script, LoopsThatAreTooLongAreNotUnrolled) {
  EXPECT_USER_ERROR(inspected(module_of("Net", {{"again", linear(7, 7)}, {"head", linear(7, 3)}}, {},
                                        "  for i in range(100000):\n    for j in range(100000):\n"
                                        "      x = self.again(x)\n  return self.head(x)\n")),
                    "control flow that depends on the records, or is too long");
}

TEST_F(Script, LoopsAreNotForgotten) {
  EXPECT_USER_ERROR(inspected(module_of("Net", {{"head", linear(8, 3)}}, {},
                                        "  ys = [x]\n  for i in range(x.size(0)):\n    ys.append(x)\n"
                                        "  return self.head(torch.cat(ys, 0).mean([0], True) + x)\n")),
                    "control flow");
}

// The archive's own probabilities do not count.
TEST_F(Script, DropoutIsWhatTheModelsOptionSays) {
  const auto net = [](const std::string& drop) {
    Module module("Net");
    module.register_attribute("training", c10::BoolType::get(), true);
    module.register_module("first", linear(7, 64));
    module.register_module("head", linear(64, 3));
    module.define("def forward(self, x):\n  y = self.first.forward(x)\n  y = " + drop +
                  "\n  return self.head.forward(torch.relu(y))\n");
    return module;
  };
  const auto outputs_differ = [&](const std::string& drop, double dropout) {
    saved(net(drop), file_);
    models::ModelOptions options;
    options.name = "torchscript";
    options.weights = file_.string();
    options.dropout = dropout;
    Case c = make_case(options, {{7}, 3}, 4);
    c.model->train();
    return !at::equal(c.model->logits(c.x), c.model->logits(c.x));
  };
  const std::string usual = "torch.dropout(y, 0.5, self.training)", traced = "torch.dropout(y, 0.5, True)",
                    off = "torch.dropout(y, 0.5, False)", channels = "torch.feature_dropout(y, 0.5, self.training)";
  for (const std::string& drop : {usual, traced, off, channels}) EXPECT_FALSE(outputs_differ(drop, 0)) << drop;
  EXPECT_TRUE(outputs_differ(usual, 0.2));
  EXPECT_TRUE(outputs_differ(traced, 0.2));
  EXPECT_FALSE(outputs_differ(off, 0.2));
  EXPECT_USER_ERROR(outputs_differ(channels, 0.2), "drops whole channels");
  EXPECT_EQ(inspected(net(usual)).dropouts, 1);
  EXPECT_EQ(inspected(net(off)).dropouts, 0);

  Case c = rebuilt(net(usual), {{7}, 3}, 4);
  PerExampleClipper clipper(*c.model, c.flat, {.bound = 1, .usual_batch = 4});
  EXPECT_GT(clipper.sum(c.x, c.y).norms.min().item<double>(), 0);
}

TEST_F(Script, ParametersThatForwardDoesNotUseStay) {
  Module module = module_of("Net", {{"first", linear(7, 9)}, {"spare", linear(4, 4)}, {"head", linear(9, 3)}},
                            {{"scale", drawn({2})}}, "  return self.head(torch.relu(self.first(x)))\n");
  Case c = rebuilt(module, {{7}, 3}, 4);
  NamedTensors state = c.model->state();
  for (const auto& parameter : module.named_parameters()) {
    ASSERT_TRUE(find_tensor(state, parameter.name).defined()) << parameter.name;
    EXPECT_TRUE(at::equal(find_tensor(state, parameter.name), parameter.value)) << parameter.name;
  }
  for (const auto& [name, value] : c.model->shared_parameters()) EXPECT_FALSE(name.starts_with("spare")) << name;
  PerExampleClipper clipper(*c.model, c.flat, {.bound = 1, .usual_batch = 4});
  EXPECT_GT(clipper.sum(c.x, c.y).norms.min().item<double>(), 0);
  const models::ScriptLayers found = inspected(module);
  ASSERT_EQ(found.layers.size(), 5u);
  EXPECT_EQ(found.layers.back().kind, "not used");
  EXPECT_FALSE(found.layers.back().trained);
}

TEST_F(Script, OneParameterMayHaveTwoNames) {
  Module module =
      module_of("Net", {{"first", linear(7, 7)}, {"head", linear(7, 3)}}, {{"b", drawn({7})}},
                "  y = torch.linear(torch.relu(self.first(x)), self.tied, self.b)\n  return self.head(y)\n", {"tied"});
  const auto names = [](const NamedTensors& tensors) {
    std::set<std::string> found;
    for (const auto& [name, value] : tensors) found.insert(name);
    return found;
  };
  EXPECT_USER_ERROR(inspected(module), "uses 'first' a second time");
  module = module_of("Net", {{"first", linear(7, 7, false)}, {"head", linear(7, 3)}}, {},
                     "  return self.head(torch.linear(torch.relu(self.first(x)), self.tied, None))\n", {"tied"});
  Case c = rebuilt(module, {{7}, 3}, 4);
  EXPECT_EQ(names(c.model->state()), (std::set<std::string>{"first.weight", "head.weight", "head.bias"}));
  const NamedTensors all = models::with_all_names(c.model->state(), file_);
  EXPECT_EQ(names(all), (std::set<std::string>{"first.weight", "tied", "head.weight", "head.bias"}));
  EXPECT_TRUE(find_tensor(all, "tied").is_same(find_tensor(all, "first.weight")));
}

// As it is, where nobody makes a promise.
class Opaque : public Script {
 protected:
  std::shared_ptr<models::Model> taken(const Module& module, const models::Task& task) {
    saved(module, file_);
    models::ModelOptions options;
    options.name = "torchscript";
    options.weights = file_.string();
    RandomStream init(3, "opaque-test");
    return models::make_model(options, task, init, true);
  }
  std::shared_ptr<models::Model> backbone(const Module& module, const models::Task& task) {
    return models::make_script_backbone(saved(module, file_), task);
  }
  static bool is_opaque(const models::Model& model) {
    return dynamic_cast<const models::OpaqueModel*>(&model) != nullptr;
  }
};

TEST_F(Opaque, IsTakenOnlyWhereItIsAllowedAndNeeded) {
  EXPECT_TRUE(is_opaque(*taken(batch_norm_mlp(), {{7}, 3})));
  EXPECT_FALSE(is_opaque(*taken(shared_mlp(), {{7}, 3})));
  EXPECT_USER_ERROR(rebuilt(batch_norm_mlp(), {{7}, 3}, 4), "'bn' is a BatchNorm, which mixes the records of a batch");
  EXPECT_USER_ERROR(rebuilt(batch_norm_mlp(), {{7}, 3}, 4), "as it is, the archive can give frozen features");
  EXPECT_USER_ERROR(inspected(batch_norm_mlp()), "as it is, the archive can give frozen features");
}

TEST_F(Opaque, TrainsAsTheModuleDoes) {
  Module module = batch_norm_mlp();
  const auto model = taken(module, {{7}, 3});
  models::FlatParameters flat(*model);
  const at::Tensor x = at::randn({6, 7}), y = at::randint(0, 3, {6}, at::kLong);
  at::cross_entropy_loss(model->logits(x), y).backward();
  module.train();
  at::cross_entropy_loss(module.forward({x}).toTensor(), y).backward();
  for (const auto& [name, value] : model->shared_parameters()) {
    EXPECT_TRUE(at::allclose(value.grad(), parameter_of(module, name).grad(), 1e-5, 1e-7)) << name;
  }
  // Running statistics moved, and are averaged with the parameters.
  const NamedTensors buffers = model->buffer_tensors();
  ASSERT_EQ(buffers.size(), 2u);
  for (const auto& buffer : module.named_buffers()) {
    EXPECT_TRUE(at::allclose(find_tensor(buffers, buffer.name), buffer.value)) << buffer.name;
    EXPECT_FALSE(
        at::equal(find_tensor(buffers, buffer.name), buffer.name.ends_with("var") ? at::ones({9}) : at::zeros({9})));
  }
  // The module sees what is written to the parameters.
  flat.values().zero_();
  model->eval();
  EXPECT_EQ(model->logits(x).abs().max().item<float>(), 0);
}

TEST_F(Opaque, IsNeverClipped) {
  const auto model = taken(batch_norm_mlp(), {{7}, 3});
  models::FlatParameters flat(*model);
  EXPECT_USER_ERROR(PerExampleClipper(*model, flat, {.bound = 1, .usual_batch = 4}), "has a per-example form");
  for (auto& parameter : model->parameters()) parameter.set_requires_grad(false);
  models::FlatParameters nothing(*model);
  PerExampleClipper clipper(*model, nothing, {.bound = 1, .usual_batch = 4});
  EXPECT_USER_ERROR(clipper.sum(at::randn({4, 7}), at::zeros({4}, at::kLong)), "is a BatchNorm");
}

TEST_F(Opaque, RefusesWhatNoTwoRunsRepeat) {
  const auto net = [](const std::string& body) { return module_of("Net", {{"head", linear(7, 3)}}, {}, body); };
  for (const char* body :
       {"  return self.head(x + torch.rand_like(x))\n", "  y = x.clone()\n  y.normal_(0., 1.)\n  return self.head(y)\n",
        "  if bool(x.sum() > 1e9):\n    x = torch.bernoulli(x)\n  return self.head(x)\n"}) {
    SCOPED_TRACE(body);
    EXPECT_USER_ERROR(taken(net(body), {{7}, 3}), "draws random numbers");
    EXPECT_USER_ERROR(backbone(net(body), {{7}, 3}), "draws random numbers");
  }
  EXPECT_USER_ERROR(taken(batch_norm_mlp(), {{7}, 4}), "must give logits [5, 4]");
  EXPECT_USER_ERROR(taken(batch_norm_mlp(), {{8}, 3}), "it fails on 5 records of the shape [8]");
}

TEST_F(Opaque, AnyModuleGivesFeatures) {
  const Module branches =
      module_of("Net", {{"inner", linear(7, 5)}}, {},
                "  if bool(x.sum() > 0):\n    x = -x\n  return self.inner(x).view([-1, 5, 1, 1])\n");
  const auto model = backbone(branches, {{7}, 3});
  EXPECT_EQ(model->feature_width(), 5);
  const at::Tensor x = at::randn({1, 7});
  EXPECT_TRUE(at::allclose(model->features(x), Module(branches).forward({x}).toTensor().flatten(1)));
  // BatchNorm uses its running statistics.
  Module norm = batch_norm_mlp();
  norm.eval();
  EXPECT_TRUE(at::allclose(backbone(norm, {{7}, 3})->features(x), norm.forward({x}).toTensor()));
}

// A record's features must not depend on those before it.
TEST_F(Opaque, FeaturesForgetOtherRecords) {
  Module module("Net");
  module.register_buffer("count", at::zeros({1}));
  module.register_attribute("seen", c10::ListType::ofTensors(), c10::List<at::Tensor>());
  module.register_attribute("last", c10::TensorType::get(), at::zeros({1, 7}));
  module.define(
      "def forward(self, x):\n"
      "  self.count.add_(1)\n"
      "  self.seen.append(x)\n"
      "  y = self.last\n"
      "  self.last = x\n"
      "  return x * self.count + len(self.seen) + y\n");
  const auto model = backbone(module, {{7}, 3});
  const at::Tensor x = at::randn({1, 7});
  const at::Tensor first = model->features(x);
  model->features(at::randn({1, 7}));
  EXPECT_TRUE(at::equal(model->features(x), first));

  const Module writes =
      module_of("Writes", {}, {{"w", drawn({7})}}, "  self.w.detach().add_(1)\n  return x + self.w\n");
  const auto writing = backbone(writes, {{7}, 3});
  EXPECT_USER_ERROR(writing->features(x), "changes its parameters");
}

TEST_F(Script, RefusesWhatDoesNotSuitTheRecords) {
  EXPECT_USER_ERROR(rebuilt(shared_mlp(), {{8}, 3}, 4), "it cannot read 5 records of the shape [8]");
  EXPECT_USER_ERROR(rebuilt(module_of("Net", {{"inner", linear(7, 7)}, {"head", linear(7, 3)}}, {},
                                      "  return self.head(self.inner(x.transpose(0, 1)).transpose(0, 1).mean([1]))\n"),
                            {{6, 7}, 3}, 4),
                    "the layer 'inner' gets [6, 5, 7] for 5 records, and records must be its first dimension");
  EXPECT_USER_ERROR(rebuilt(shared_mlp(), {{7}, 4}, 4), "tells 3 classes apart, and the records have 4");
  EXPECT_USER_ERROR(
      rebuilt(module_of("Net", {{"head", linear(7, 3)}}, {}, "  return self.head(x - x.mean([0], True))\n"), {{7}, 3},
              4),
      "depends on which others are in the batch");
  EXPECT_USER_ERROR(
      rebuilt(module_of("Net", {{"head", linear(7, 3)}}, {}, "  return self.head(x).flatten()\n"), {{7}, 3}, 4),
      "the classifier; it ends in");
  EXPECT_USER_ERROR(
      rebuilt(module_of("Net", {{"head", linear(7, 3)}}, {}, "  return self.head(x.reshape([4, 7]))\n"), {{7}, 3}, 4),
      "it cannot read 5 records");
}

TEST_F(Script, RefusesFilesThatAreNoArchives) {
  EXPECT_USER_ERROR(models::inspect_script("/nowhere/model.pt"), "there is no file");
  saved(shared_mlp(), file_);
  std::filesystem::resize_file(file_, std::filesystem::file_size(file_) / 2);
  EXPECT_USER_ERROR(models::inspect_script(file_), "is not a TorchScript archive that can be read");
  std::ofstream(file_) << "not an archive";
  EXPECT_USER_ERROR(models::inspect_script(file_), "is not a TorchScript archive that can be read");
  models::ModelOptions options;
  options.name = "torchscript";
  EXPECT_USER_ERROR(make_case(options, {{7}, 3}, 1), "set model.weights to the file");
}

}  // namespace
}  // namespace sotto::privacy
