#include "models/script/trial.h"

#include "base/random.h"

#include <ATen/ATen.h>
#include <c10/util/Exception.h>

#include <sstream>
#include <vector>

namespace sotto::models {

at::Tensor made_up_records(const Task& task, int64_t count) {
  RandomStream stream(1, "script-records");
  at::Generator generator = stream.torch_generator();
  std::vector<int64_t> shape = task.record_shape;
  shape.insert(shape.begin(), count);
  if (task.tokens) return at::randint(0, 2, shape, generator, at::TensorOptions(at::kLong));
  return at::randn(shape, generator);
}

// The interpreter puts the reason behind a trace.
std::string reason_of(const std::exception& error) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  const std::string text = of_torch != nullptr ? of_torch->what_without_backtrace() : error.what();
  std::istringstream lines(text);
  std::string first, reason;
  for (std::string line; std::getline(lines, line);) {
    if (first.empty()) first = line;
    if (line.starts_with("RuntimeError: ")) reason = line.substr(std::string("RuntimeError: ").size());
  }
  return reason.empty() ? first : reason;
}

}  // namespace sotto::models
