#include "data/partition/groups.h"

#include "base/error.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>

namespace sotto::data::partitioning {
namespace {

// The group out of which `donor` can best spare a row for `receiver`, or null.
Group* group_to_share(std::vector<Group>& groups, size_t donor, size_t receiver) {
  Group* best = nullptr;
  for (Group& group : groups) {
    if (receiver >= group.counts.size() || donor >= group.counts.size() || group.counts[donor] == 0) continue;
    if (best == nullptr || group.counts[donor] > best->counts[donor]) best = &group;
  }
  return best;
}

}  // namespace

std::vector<std::vector<int64_t>> rows_by_key(std::span<const int64_t> keys, int64_t count) {
  std::vector<std::vector<int64_t>> rows(static_cast<size_t>(count));
  for (size_t row = 0; row < keys.size(); ++row) {
    rows[static_cast<size_t>(keys[row])].push_back(static_cast<int64_t>(row));
  }
  return rows;
}

std::vector<int64_t> apportion(int64_t total, std::span<const double> weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  SOTTO_INVARIANT(sum > 0.0);
  std::vector<int64_t> counts(weights.size());
  std::vector<double> remainder(weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    const double quota = static_cast<double>(total) * (weights[i] / sum);
    counts[i] = static_cast<int64_t>(std::floor(quota));
    remainder[i] = quota - std::floor(quota);
  }
  std::vector<size_t> order(weights.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return remainder[a] > remainder[b]; });
  const int64_t left = total - std::accumulate(counts.begin(), counts.end(), int64_t{0});
  for (int64_t i = 0; i < left; ++i) ++counts[order[static_cast<size_t>(i)]];
  return counts;
}

std::vector<int64_t> even_parts(int64_t total, int64_t parts) {
  std::vector<int64_t> counts(static_cast<size_t>(parts), total / parts);
  for (int64_t i = 0; i < total % parts; ++i) ++counts[static_cast<size_t>(i)];
  return counts;
}

void raise_to_minimum(std::vector<Group>& groups, int64_t clients, int64_t needed) {
  std::vector<int64_t> size(static_cast<size_t>(clients), 0);
  for (const Group& group : groups) {
    std::transform(group.counts.begin(), group.counts.end(), size.begin(), size.begin(), std::plus<>());
  }
  using Entry = std::pair<int64_t, size_t>;
  std::set<Entry, std::greater<>> donors;
  for (size_t i = 0; i < size.size(); ++i) {
    if (size[i] > needed) donors.emplace(size[i], i);
  }
  const auto give_one_to = [&](size_t receiver) {
    for (const Entry& entry : donors) {
      const size_t donor = entry.second;
      Group* group = group_to_share(groups, donor, receiver);
      if (group == nullptr) continue;
      --group->counts[donor];
      ++group->counts[receiver];
      ++size[receiver];
      donors.erase(entry);
      if (--size[donor] > needed) donors.emplace(size[donor], donor);
      return true;
    }
    return false;
  };
  for (size_t i = 0; i < size.size(); ++i) {
    while (size[i] < needed && give_one_to(i)) continue;
  }
}

std::vector<std::vector<int64_t>> deal(std::vector<Group> groups, int64_t clients, uint64_t seed) {
  std::vector<std::vector<int64_t>> hands(static_cast<size_t>(clients));
  for (size_t g = 0; g < groups.size(); ++g) {
    auto& [rows, counts] = groups[g];
    RandomStream(seed, "partition-rows", 0, g).shuffle(rows);
    auto next = rows.begin();
    for (size_t client = 0; client < counts.size(); ++client) {
      SOTTO_INVARIANT(counts[client] <= rows.end() - next);
      hands[client].insert(hands[client].end(), next, next + counts[client]);
      next += counts[client];
    }
  }
  return hands;
}

ClassDeck::ClassDeck(std::vector<int64_t> classes, RandomStream stream)
    : classes_(std::move(classes)), stream_(stream) {}

std::vector<int64_t> ClassDeck::hand(int64_t size) {
  SOTTO_INVARIANT(size <= static_cast<int64_t>(classes_.size()));
  std::vector<int64_t> hand;
  while (static_cast<int64_t>(hand.size()) < size) {
    if (deck_.empty()) {
      deck_ = classes_;
      stream_.shuffle(deck_);
    }
    const auto fresh = std::find_if(deck_.begin(), deck_.end(), [&](int64_t label) {
      return std::find(hand.begin(), hand.end(), label) == hand.end();
    });
    // A hand begun with the end of one deck is completed from a new, full one: it always has a fresh class.
    SOTTO_INVARIANT(fresh != deck_.end());
    hand.push_back(*fresh);
    deck_.erase(fresh);
  }
  return hand;
}

}  // namespace sotto::data::partitioning
