// Between the public headers (include/sotto) and the engine: tensors and errors in each other's terms.
#pragma once

#include "base/error.h"
#include "base/named_tensors.h"
#include "privacy/ledger.h"

#include <sotto/accounting.h>
#include <sotto/privacy.h>
#include <sotto/sotto.h>

#include <filesystem>

namespace sotto {

// Both share the tensors' memory.
NamedTensors to_engine(const Tensors& tensors);
Tensors to_public(const NamedTensors& tensors);

privacy::Adjacency to_engine(Adjacency adjacency);

// Work of the engine that a program asked for.
template <typename Work>
auto for_program(Work&& work) -> decltype(work()) {
  try {
    return work();
  } catch (const privacy::BudgetSpent& refused) {
    throw BudgetSpent(refused.what());
  } catch (const UserError& mistake) {
    throw Error(mistake.what());
  } catch (const std::filesystem::filesystem_error& failure) {
    throw Error(failure.path1().string() + ": " + failure.code().message());
  }
}

// Work of the program that the engine asks for.
template <typename Work>
auto for_engine(Work&& work) -> decltype(work()) {
  try {
    return work();
  } catch (const BudgetSpent& refused) {
    throw privacy::BudgetSpent(refused.what());
  } catch (const Error& mistake) {
    throw UserError(mistake.what());
  }
}

}  // namespace sotto
