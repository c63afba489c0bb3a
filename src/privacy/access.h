// The one door to private tensors. Only files of this folder may include it (scripts/lint.sh checks).
#pragma once

#include "privacy/release.h"

namespace sotto::privacy {

class Access {
 public:
  static NamedTensors& values(Contribution& contribution) { return contribution.values_; }
  static NamedTensors& values(Bounded& bounded) { return bounded.values_; }
  static const NamedTensors& values(const Bounded& bounded) { return bounded.values_; }
  static Bounded bounded(NamedTensors values, std::vector<Group> groups, Norm norm) {
    return Bounded(std::move(values), std::move(groups), norm);
  }
  static NamedTensors& values(Release& release) { return release.values_; }
  static Release release(NamedTensors values, Receipt receipt) {
    return Release(std::move(values), std::move(receipt));
  }
  // For what another process has paid for.
  static Receipt foreign_receipt() { return Receipt(0, 0, 0); }
  static Trusted<Bounded> trusted(Bounded bounded, Receipt receipt) {
    return Trusted<Bounded>(std::move(bounded), std::move(receipt));
  }
};

}  // namespace sotto::privacy
