// Features as public data sees them: centred at its mean and, if wanted, laid on its principal axes.
//
// What is learnt from clients' records costs privacy; what is learnt from public ones, or from images of noise, is free.
#pragma once

#include "data/options.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace sotto::models {

struct Projection {
  at::Tensor mean;  // [d]
  at::Tensor axes;  // [d, k], orthonormal, by falling variance; undefined: records are centred only
};

// Of the rows of `features` [N, d]. `dimensions` is 0 or the number of axes, at most d and less than N. The largest
// entry of every axis is positive, so that the same features give the same axes.
Projection fit_projection(const at::Tensor& features, int64_t dimensions);

// [N, d] → [N, k]. A row depends on no other, to the last bit: each is a product of its own.
at::Tensor project(const Projection& projection, const at::Tensor& features);

// The public dataset that data.project_on names; nothing if it names none, or images of noise.
std::optional<data::DataOptions> projection_data(const data::DataOptions& data);

// uint8 [count, channels, height, width]: noise at several scales, the same in every call.
at::Tensor random_images(int64_t count, int64_t channels, int64_t height, int64_t width);

}  // namespace sotto::models
