// Sotto in a program of one's own: what the other headers share.
//
//   run.h          load a config, run it, follow its rounds, read results
//   method.h       a method of one's own
//   privacy.h      release tensors of one's own against an owner's budget; read ledgers
//   accounting.h   what noise costs, and how much of it a budget asks for
//
// The library is libsotto: find_package(sotto) in CMake gives the target sotto::sotto, and `pkg-config sotto` knows it too.
// docs/cpp.md shows each header at work.
#pragma once

#include <ATen/core/Tensor.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Of these headers. Programs that were built with 0.x run with libraries of the same x.
#define SOTTO_VERSION_MAJOR 0
#define SOTTO_VERSION_MINOR 1
#define SOTTO_VERSION_PATCH 0

#define SOTTO_API __attribute__((visibility("default")))

namespace sotto {

// Of the library that is loaded: "0.1.0".
SOTTO_API const char* version();

// Something that whoever called or configured can mend. One line: what is wrong, where, what to do. Whatever else is
// thrown is a failing machine or a fault of the library.
class SOTTO_API Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Tensors by name, in an order that is kept.
using Tensors = std::vector<std::pair<std::string, at::Tensor>>;

// The tensor of this name, or an undefined one.
SOTTO_API at::Tensor find(const Tensors& tensors, std::string_view name);

// Messages for people on standard error; warnings are shown all the same. They are on unless switched off.
SOTTO_API void show_messages(bool shown);

// The engine's side of these headers; not for programs.
struct Bridge;

}  // namespace sotto
