// Trying out somebody else's module before anything depends on it.
#pragma once

#include "models/model.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <exception>
#include <string>

namespace sotto::models {

// As many records of the task as are asked for, the same every time: numbers, or token ids.
at::Tensor made_up_records(const Task& task, int64_t count);

// What libtorch has to say, in one line.
std::string reason_of(const std::exception& error);

}  // namespace sotto::models
