// Who knows what. A server sees a PublicContext and nothing else; records are in a ClientContext, which only a client
// gets.
#pragma once

#include "base/random.h"
#include "data/dataset.h"
#include "methods/run_settings.h"
#include "models/model.h"
#include "privacy/release.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sotto::methods {

// What everybody may know of a federation's data before it begins, because it was declared. In a simulation it is
// declared by whoever deals the records.
struct PublicFacts {
  models::Task task = {};
  data::Kind kind = data::Kind::kImages;
  std::vector<std::string> class_names = {};
  std::vector<int64_t> feature_blocks = {};  // widths, if records are features of several backbones side by side
  double average_records = 0;                // of a client
  int64_t least_records = 0;                 // of the smallest client
  int64_t most_participations = 0;           // of any client over the whole run

  int64_t classes() const { return static_cast<int64_t>(class_names.size()); }
};

// Both must outlive whoever is made from it.
struct PublicContext {
  const RunSettings& spec;
  const PublicFacts& facts;
};

// The same beside the training records that shards index: one client's own or, in a simulation, everybody's.
struct ClientContext : PublicContext {
  const data::Records& records;
};

// What is publicly declared of one client.
struct ClientFacts {
  int64_t records = 0;
  int64_t participations = 0;  // over the whole run
  double epsilon = 0;          // its budget; 0 without [privacy]
};

// Where a client's step stands in the run.
struct StepContext {
  uint64_t seed = 0;
  privacy::ReleaseContext release;
  ClientFacts own = {};
  int64_t participation = 1;  // which of own.participations this is, from 1

  RandomStream stream(std::string_view purpose) const {
    return RandomStream(seed, purpose, static_cast<uint64_t>(release.round), static_cast<uint64_t>(release.client));
  }
};

// Where the server's turn stands in the run. Its releases are made for everyone, or for each client of the cohort.
struct RoundContext {
  privacy::ReleaseContext release;
  std::span<const int64_t> cohort;

  int64_t round() const { return release.round; }
};

}  // namespace sotto::methods
