// TorchScript archives as other programs save them, made here.
#pragma once

#include <ATen/ATen.h>
#include <torch/script.h>

#include <filesystem>
#include <regex>
#include <string>
#include <utility>
#include <vector>

namespace sotto::scripts {

using torch::jit::Module;

inline at::Tensor drawn(at::IntArrayRef shape) {
  return at::randn(shape) * 0.3;
}

// A module of these parts and parameters, with this body of forward(self, x). `tied` are other names of its first part's
// weight.
inline Module module_of(const std::string& name, const std::vector<std::pair<std::string, Module>>& parts,
                        const std::vector<std::pair<std::string, at::Tensor>>& parameters, const std::string& body,
                        const std::vector<std::string>& tied = {}) {
  Module module(name);
  for (const auto& [part, value] : parts) module.register_module(part, value);
  for (const auto& [parameter, value] : parameters) {
    module.register_parameter(parameter, value.clone().set_requires_grad(true), false);
  }
  for (const std::string& other : tied) {
    module.register_parameter(other, parts.front().second.attr("weight").toTensor(), false);
  }
  std::string code = body;  // a part is called by its method here
  for (const auto& [part, value] : parts) {
    code = std::regex_replace(code, std::regex("self\\." + part + "\\("), "self." + part + ".forward(");
  }
  module.define("def forward(self, x):\n" + code);
  return module;
}

inline Module linear(int64_t in, int64_t out, bool bias = true) {
  if (!bias) {
    return module_of("Linear", {}, {{"weight", drawn({out, in})}}, "  return torch.linear(x, self.weight, None)\n");
  }
  return module_of("Linear", {}, {{"weight", drawn({out, in})}, {"bias", drawn({out})}},
                   "  return torch.linear(x, self.weight, self.bias)\n");
}

inline Module conv(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t padding) {
  const auto pair = [](int64_t n) { return "[" + std::to_string(n) + ", " + std::to_string(n) + "]"; };
  return module_of(
      "Conv2d", {}, {{"weight", drawn({out, in, kernel, kernel})}},
      "  return torch.conv2d(x, self.weight, None, " + pair(stride) + ", " + pair(padding) + ", [1, 1], 1)\n");
}

inline Module group_norm(int64_t groups, int64_t channels) {
  return module_of(
      "GroupNorm", {}, {{"weight", 1 + drawn({channels})}, {"bias", drawn({channels})}},
      "  return torch.group_norm(x, " + std::to_string(groups) + ", self.weight, self.bias, 1e-05, True)\n");
}

inline Module layer_norm(int64_t width) {
  return module_of(
      "LayerNorm", {}, {{"weight", 1 + drawn({width})}, {"bias", drawn({width})}},
      "  return torch.layer_norm(x, [" + std::to_string(width) + "], self.weight, self.bias, 1e-06, True)\n");
}

inline Module embedding(int64_t count, int64_t width) {
  return module_of("Embedding", {}, {{"weight", drawn({count, width})}},
                   "  return torch.embedding(self.weight, x, -1, False, False)\n");
}

inline std::filesystem::path saved(const Module& module, const std::filesystem::path& file) {
  module.save(file.string());
  return file;
}

// Records [3, 8, 8], five classes. `out += x` and relu_ are in place, as torchvision writes them.
inline Module resnet() {
  const auto block = [](int64_t in, int64_t out, int64_t stride) {
    return module_of("Block",
                     {{"conv1", conv(in, out, 3, stride, 1)},
                      {"bn1", group_norm(2, out)},
                      {"conv2", conv(out, out, 3, 1, 1)},
                      {"bn2", group_norm(2, out)},
                      {"downsample", conv(in, out, 1, stride, 0)}},
                     {},
                     "  y = torch.relu_(self.bn1(self.conv1(x)))\n"
                     "  y = self.bn2(self.conv2(y))\n"
                     "  y += self.downsample(x)\n"
                     "  return torch.relu_(y)\n");
  };
  return module_of("ResNet",
                   {{"conv1", conv(3, 8, 3, 1, 1)},
                    {"bn1", group_norm(2, 8)},
                    {"layer1", block(8, 8, 1)},
                    {"layer2", block(8, 12, 2)},
                    {"fc", linear(12, 5)}},
                   {},
                   "  assert x.dim() == 4, \"images are expected\"\n"
                   "  y = torch.relu_(self.bn1(self.conv1(x)))\n"
                   "  y = torch.max_pool2d(y, [2, 2], [2, 2], [0, 0], [1, 1], False)\n"
                   "  y = self.layer2(self.layer1(y))\n"
                   "  y = torch.flatten(torch.adaptive_avg_pool2d(y, [1, 1]), 1, -1)\n"
                   "  return self.fc(y)\n");
}

// Records [3, 8, 8], five classes: patches of 4, a class token, positions, two heads.
inline Module vit() {
  const Module attention = module_of(
      "Attention", {{"out_proj", linear(8, 8)}}, {{"in_proj_weight", drawn({24, 8})}, {"in_proj_bias", drawn({24})}},
      "  q, k, v = torch.linear(x, self.in_proj_weight, self.in_proj_bias).chunk(3, -1)\n"
      "  b = x.size(0)\n"
      "  n = x.size(1)\n"
      "  q = q.reshape([b, n, 2, 4]).transpose(1, 2) / 2.0\n"
      "  k = k.reshape([b, n, 2, 4]).permute([0, 2, 3, 1])\n"
      "  v = v.reshape([b, n, 2, 4]).transpose(1, 2)\n"
      "  y = torch.matmul(torch.softmax(torch.matmul(q, k), -1), v)\n"
      "  return self.out_proj(y.transpose(1, 2).reshape([b, n, 8]))\n");
  const Module block = module_of("Block",
                                 {{"norm1", layer_norm(8)},
                                  {"attn", attention},
                                  {"norm2", layer_norm(8)},
                                  {"fc1", linear(8, 16)},
                                  {"fc2", linear(16, 8, false)}},
                                 {},
                                 "  x = x + self.attn(self.norm1(x))\n"
                                 "  return x + self.fc2(torch.gelu(self.fc1(self.norm2(x))))\n");
  return module_of(
      "Vit", {{"patches", conv(3, 8, 4, 4, 0)}, {"block", block}, {"norm", layer_norm(8)}, {"head", linear(8, 5)}},
      {{"cls_token", drawn({1, 1, 8})}, {"pos_embed", drawn({1, 5, 8})}},
      "  y = self.patches(x).flatten(2).transpose(1, 2)\n"
      "  y = torch.cat([self.cls_token.expand([x.size(0), -1, -1]), y], 1) + self.pos_embed\n"
      "  return self.head(torch.select(self.norm(self.block(y)), 1, 0))\n");
}

// Records of 6 token ids below 40, four classes.
inline Module text() {
  return module_of("Text", {{"table", embedding(40, 8)}, {"hidden", linear(8, 12)}, {"head", linear(12, 4)}}, {},
                   "  return torch.log_softmax(self.head(torch.tanh(self.hidden(self.table(x).mean([1])))), 1)\n");
}

// Records [1, 8, 8], five classes: down, up again, and sums over what was skipped.
inline Module unet() {
  return module_of("UNet",
                   {{"down1", conv(1, 4, 3, 1, 1)},
                    {"down2", conv(4, 4, 3, 2, 1)},
                    {"up", conv(4, 4, 3, 1, 1)},
                    {"norm", group_norm(1, 4)},
                    {"head", linear(4, 5)}},
                   {},
                   "  a = torch.silu(self.down1(x))\n"
                   "  b = torch.silu(self.down2(a))\n"
                   "  c = torch.upsample_nearest2d(self.up(b), [8, 8], None, None)\n"
                   "  return self.head(self.norm(a + c).mean([2, 3]))\n");
}

// Records of 7 numbers, three classes; BatchNorm with running statistics.
inline Module batch_norm_mlp() {
  Module norm("BatchNorm1d");
  norm.register_attribute("training", c10::BoolType::get(), true);
  norm.register_parameter("weight", at::ones({9}).set_requires_grad(true), false);
  norm.register_parameter("bias", at::zeros({9}).set_requires_grad(true), false);
  norm.register_buffer("running_mean", at::zeros({9}));
  norm.register_buffer("running_var", at::ones({9}));
  norm.define(
      "def forward(self, x):\n"
      "  return torch.batch_norm(x, self.weight, self.bias, self.running_mean, self.running_var, self.training, 0.1, "
      "1e-05, False)\n");
  return module_of("Net", {{"first", linear(7, 9)}, {"bn", norm}, {"head", linear(9, 3)}}, {},
                   "  return self.head(torch.relu(self.bn(self.first(x))))\n");
}

// Records of 7 numbers, three classes; its middle layer is used twice.
inline Module shared_mlp() {
  return module_of("Mlp", {{"first", linear(7, 9)}, {"again", linear(9, 9, false)}, {"head", linear(9, 3)}}, {},
                   "  y = torch.relu(self.first(x))\n"
                   "  y = torch.relu(self.again(y)) + y\n"
                   "  return self.head(torch.relu(self.again(y)))\n");
}

}  // namespace sotto::scripts
