// The partition rules: each says which groups of training rows there are and how many rows of each every client gets.
//
// A rule is a pure function of the request. Impossible requests are UserErrors; a client that ends below the minimum is
// found by the caller.
#pragma once

#include "data/dataset.h"
#include "data/options.h"
#include "data/partition/groups.h"
#include "data/partition/labels.h"

#include <cstdint>
#include <vector>

namespace sotto::data::partitioning {

struct Request {
  const DataOptions& options;
  const Dataset& dataset;
  const Labels& train;
  uint64_t seed;
  int64_t needed;  // records a client must be dealt for min_records of them to be training records
};

// Equal sizes, labels at random.
std::vector<Group> iid(const Request& request);

// Per class, Dirichlet(alpha) over the clients; then raised to the minimum.
std::vector<Group> dirichlet(const Request& request);

// Sizes in proportion to Dirichlet(alpha), labels at random; then raised to the minimum.
std::vector<Group> quantity(const Request& request);

// classes_per_client classes each. With enough classes nobody shares one (and classes may be left over); otherwise
// classes are dealt evenly and split evenly among their holders.
std::vector<Group> pathological(const Request& request);

// Client i holds domain i mod domains; a domain is split evenly among its clients.
std::vector<Group> by_domain(const Request& request);

// iid, but the private class is dealt among all clients except the last.
std::vector<Group> private_label(const Request& request);

// LaDP-FL's Distribution I. All clients but the last hold classes_per_client classes, the private one among them; the
// last holds one fewer, without it. All have the same size, the largest the classes allow; what is over is left out.
std::vector<Group> distribution_1(const Request& request);

// LaDP-FL's Distribution II. Each public class is Dirichlet(alpha) over all clients, the private one Dirichlet(alpha)
// over all but the last; then raised to the minimum.
std::vector<Group> distribution_2(const Request& request);

// For rules with a curious client: a private label out of range or without records, or fewer than two clients, is a
// UserError.
void check_private_label(const Request& request);

}  // namespace sotto::data::partitioning
