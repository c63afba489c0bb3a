// Pictures that attacks leave beside their JSON, magnified so that one can see something.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <string>

namespace sotto::attacks {

// [n, C, H, W], grey or RGB.
bool are_pictures(const at::Tensor& x);

// One picture [1, C, H, W] of floats in [-1, 1] as NAME.png; returns the file's name.
std::string write_picture(const std::filesystem::path& folder, const std::string& name, const at::Tensor& picture);

// Several of them in rows of ten.
void write_grid(const std::filesystem::path& file, const at::Tensor& pictures);

}  // namespace sotto::attacks
