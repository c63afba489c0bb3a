#include "privacy/right_count.h"

#include "base/error.h"
#include "privacy/access.h"

#include <ATen/ATen.h>

namespace sotto::privacy {

Group right_count_group() {
  return {.name = kRightCount, .tensors = 1, .coordinates = 1, .sensitivity = 1};
}

Bounded count_right(Contribution&& marks) {
  NamedTensors& values = Access::values(marks);
  SOTTO_INVARIANT(values.size() == 1);
  return Access::bounded({{kRightCount, values[0].value.ne(0).sum().reshape({1})}}, {right_count_group()}, Norm::kL2);
}

}  // namespace sotto::privacy
