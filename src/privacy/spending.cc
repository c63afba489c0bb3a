#include "privacy/spending.h"

#include "privacy/ledger.h"

#include <algorithm>
#include <set>

namespace sotto::privacy {

Guarantee GuaranteeCache::operator()(const Tally& tally, double delta) {
  const std::pair key(delta, tally);
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(key);
    if (found != known_.end()) return found->second;
  }
  const Guarantee guarantee = tally.guarantee(delta);
  const std::lock_guard lock(mutex_);
  return known_.emplace(key, guarantee).first->second;
}

void Spending::take(const Event& event) {
  if (is_seen_by(event, observer_)) spent_[event.client].add(event);
}

void Spending::advance_to(int64_t round, const Ledger& ledger) {
  if (round < next_round_) return;
  for (const auto& event : ledger.events(next_round_, round)) take(event);
  next_round_ = round + 1;
}

Tally Spending::tally_of(int64_t client) const {
  Tally tally;
  for (const int64_t payer : std::set{client, kEveryone}) {
    const auto found = spent_.find(payer);
    if (found != spent_.end()) tally.add(found->second);
  }
  return tally;
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
    const Guarantee one = known_(*tally, delta_);
    worst.claimed = std::max(worst.claimed, one.claimed);
    worst.proven = std::max(worst.proven, one.proven);
    if (worst.why_unproven.empty()) worst.why_unproven = one.why_unproven;
  }
  return worst;
}

std::vector<Guarantee> guarantees(const Ledger& ledger, const std::string& observer, int64_t clients, double delta) {
  const std::map<int64_t, Tally> tallies = ledger.tallies(observer);
  const auto tally_of = [&](int64_t client) {
    const auto found = tallies.find(client);
    return found == tallies.end() ? Tally() : found->second;
  };
  const Tally everyone = tally_of(kEveryone);
  GuaranteeCache known;
  std::vector<Guarantee> result;
  for (int64_t client = 0; client < clients; ++client) {
    Tally spent = tally_of(client);
    spent.add(everyone);
    result.push_back(known(spent, delta));
  }
  return result;
}

}  // namespace sotto::privacy
