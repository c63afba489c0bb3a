#include "artifacts/spending.h"

#include "artifacts/privacy_section.h"

#include <algorithm>
#include <set>
#include <vector>

namespace sotto::artifacts {

using privacy::Guarantee;
using privacy::Tally;

Spending::Spending(const config::RunSpec& spec) : observer_(declared_observer(spec)), delta_(accounted_delta(spec)) {}

void Spending::advance_to(int64_t round, const privacy::Ledger& ledger) {
  if (round < next_round_) return;
  for (const auto& event : ledger.events(next_round_, round)) {
    if (privacy::is_seen_by(event, observer_)) spent_[event.client].add(event);
  }
  next_round_ = round + 1;
  known_.clear();
}

Tally Spending::tally_of(int64_t client) const {
  Tally tally;
  for (const int64_t payer : std::set{client, privacy::kEveryone}) {
    const auto found = spent_.find(payer);
    if (found != spent_.end()) tally.add(found->second);
  }
  return tally;
}

const Guarantee& Spending::guarantee(const Tally& tally) {
  const auto place = known_.find(tally);
  return place != known_.end() ? place->second : known_.emplace(tally, tally.guarantee(delta_)).first->second;
}

Guarantee Spending::of(int64_t client) {
  return guarantee(tally_of(client));
}

Guarantee Spending::worst() {
  std::set<Tally> distinct;
  for (const auto& [client, tally] : spent_) distinct.insert(tally_of(client));
  // Whoever spent no more than another need not be asked.
  std::vector<const Tally*> largest;
  for (const Tally& tally : distinct) {
    const auto covers = [&](const Tally* other) { return tally.within(*other); };
    if (std::any_of(largest.begin(), largest.end(), covers)) continue;
    std::erase_if(largest, [&](const Tally* other) { return other->within(tally); });
    largest.push_back(&tally);
  }
  Guarantee worst;
  for (const Tally* tally : largest) {
    const Guarantee& one = guarantee(*tally);
    worst.claimed = std::max(worst.claimed, one.claimed);
    worst.proven = std::max(worst.proven, one.proven);
    if (worst.why_unproven.empty()) worst.why_unproven = one.why_unproven;
  }
  return worst;
}

}  // namespace sotto::artifacts
