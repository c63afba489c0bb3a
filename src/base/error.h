// Errors of the user, told apart from bugs.
//
// A UserError is one clear line: what is wrong, where, what to do. The program prints it and exits with 2. Anything
// else that is thrown is a bug or a failing machine and exits with 1.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace sotto {

class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws a UserError with the formatted message.
template <typename... Args>
[[noreturn]] void fail_user(fmt::format_string<Args...> format, Args&&... args) {
  throw UserError(fmt::format(format, std::forward<Args>(args)...));
}

// Stops the program when one of its own invariants is broken; never a reaction to input.
[[noreturn]] void internal_bug(const char* condition, const char* file, int line);

#define SOTTO_INVARIANT(condition) \
  ((condition) ? static_cast<void>(0) : ::sotto::internal_bug(#condition, __FILE__, __LINE__))

}  // namespace sotto
