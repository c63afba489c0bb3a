#include "privacy/release.h"

#include "privacy/ledger.h"

namespace sotto::privacy {

// The one place that turns contributions into releases.
class ReleaseFactory {
 public:
  static Release make(Contribution&& contribution, Receipt receipt) {
    return Release(std::move(contribution.values_), receipt);
  }
};

Release in_the_clear(Contribution&& contribution, const ReleaseContext& context, const std::string& what,
                     const std::string& reason) {
  const Event event{.round = context.round,
                    .client = context.client,
                    .observer = "server",
                    .what = what,
                    .mechanism = "in-the-clear",
                    .why_unproven = reason};
  return ReleaseFactory::make(std::move(contribution), context.ledger.spend(event));
}

}  // namespace sotto::privacy
