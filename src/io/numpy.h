// A NumPy array on disk, read without NumPy.
//
//   npy     := "\x93NUMPY" major(u8) minor(u8) length(u16, from version 2 on u32, little-endian) header data
//   header  := a Python literal: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace sotto::io {

// Numbers of {bool, i1, u1, i2, i4, i8, f2, f4, f8}, little-endian, in either order of storage. Anything else (objects,
// which are pickles, text, records, big-endian numbers), and a truncated or foreign file, are UserErrors. Nothing is
// allocated for a shape that the data does not fill.
at::Tensor read_npy(const std::filesystem::path& path);
// The same for bytes in memory; `where` names them in errors.
at::Tensor parse_npy(std::string_view bytes, const std::string& where);

}  // namespace sotto::io
