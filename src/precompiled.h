// The project's one precompiled header. Sources still include what they use; this only makes it cheap.
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
