#include "base/error.h"
#include "data/partition/rules.h"

#include <algorithm>
#include <ranges>

namespace sotto::data::partitioning {
namespace {

class DistributionOne {
 public:
  explicit DistributionOne(const Request& request)
      : clients_(request.options.clients),
        labels_each_(request.options.classes_per_client),
        hidden_(static_cast<size_t>(request.options.private_label)),
        rows_(rows_by_key(request.train.y, request.train.classes)) {
    auto open = classes_present(request.train);
    std::erase(open, request.options.private_label);
    check(request, static_cast<int64_t>(open.size()));
    ClassDeck deck(open, RandomStream(request.seed, "partition-classes"));
    for (int64_t client = 0; client < clients_; ++client) hands_.push_back(deck.hand(labels_each_ - 1));
  }

  std::vector<Group> groups(const Request& request) const {
    const auto sizes = std::views::iota(int64_t{0}, request.train.size() / clients_ + 1);
    const int64_t size =
        *std::ranges::prev(std::ranges::partition_point(sizes, [&](int64_t s) { return fits(counts(s)); }));
    if (size < labels_each_ || clients_ - 1 > available(hidden_)) {
      fail_user(
          "partition 'distribution-1': dataset '{}' has too few records to give each of {} clients {} labels, the "
          "private one among them: use fewer data.clients",
          request.dataset.name, clients_, labels_each_);
    }
    auto result = counts(size);
    std::vector<Group> dealt;
    for (size_t label = 0; label < rows_.size(); ++label) dealt.push_back({rows_[label], std::move(result[label])});
    return dealt;
  }

 private:
  void check(const Request& request, int64_t open) const {
    if (labels_each_ < 2 || labels_each_ - 1 > open) {
      fail_user("partition 'distribution-1': data.classes_per_client is {}, but dataset '{}' allows 2 … {}",
                labels_each_, request.dataset.name, open + 1);
    }
  }

  int64_t available(size_t label) const { return static_cast<int64_t>(rows_[label].size()); }

  // [class][client] if every client has `size` records. The private class is shared evenly, but is never more than a
  // label's even share of a client; so it does not limit the size.
  std::vector<std::vector<int64_t>> counts(int64_t size) const {
    std::vector<std::vector<int64_t>> counts(rows_.size(), std::vector<int64_t>(static_cast<size_t>(clients_), 0));
    const int64_t hidden_each = std::min(size / labels_each_, available(hidden_) / (clients_ - 1));
    for (size_t client = 0; client < hands_.size(); ++client) {
      const bool curious = client + 1 == hands_.size();
      if (!curious) counts[hidden_][client] = hidden_each;
      const auto parts = even_parts(curious ? size : size - hidden_each, labels_each_ - 1);
      for (size_t i = 0; i < parts.size(); ++i) counts[static_cast<size_t>(hands_[client][i])][client] = parts[i];
    }
    return counts;
  }

  bool fits(const std::vector<std::vector<int64_t>>& counts) const {
    for (size_t label = 0; label < rows_.size(); ++label) {
      int64_t asked = 0;
      for (const int64_t count : counts[label]) asked += count;
      if (asked > available(label)) return false;
    }
    return true;
  }

  const int64_t clients_;
  const int64_t labels_each_;
  const size_t hidden_;
  const std::vector<std::vector<int64_t>> rows_;
  std::vector<std::vector<int64_t>> hands_;  // public classes of each client
};

}  // namespace

std::vector<Group> distribution_1(const Request& request) {
  check_private_label(request);
  return DistributionOne(request).groups(request);
}

}  // namespace sotto::data::partitioning
