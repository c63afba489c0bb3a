// What may leave a client.
//
//   Contribution  tensors computed from private records. It has no accessor outside this folder and cannot be
//   serialised. Release       what a mechanism made of a contribution, paid for in the ledger. Only this folder can
//   make one. PrivateState  personal weights and optimiser state. The client's own state store may write it; it is
//   never a message. Upload        what a client sends: a Release.
//
// So nothing reaches a server, a transcript or a report unless the ledger has a row for it.
#pragma once

#include "base/named_tensors.h"

#include <cstdint>
#include <string>

namespace sotto::privacy {

class Ledger;

class Contribution {
 public:
  explicit Contribution(NamedTensors values) : values_(std::move(values)) {}
  Contribution(Contribution&&) = default;
  Contribution& operator=(Contribution&&) = default;
  Contribution(const Contribution&) = delete;
  Contribution& operator=(const Contribution&) = delete;

 private:
  friend class ReleaseFactory;
  NamedTensors values_;
};

// Proof that the ledger holds a row for a release.
class Receipt {
 public:
  int64_t row() const { return row_; }

 private:
  friend class Ledger;
  explicit Receipt(int64_t row) : row_(row) {}
  int64_t row_;
};

class Release {
 public:
  const NamedTensors& values() const { return values_; }
  const Receipt& receipt() const { return receipt_; }

 private:
  friend class ReleaseFactory;
  Release(NamedTensors values, Receipt receipt) : values_(std::move(values)), receipt_(receipt) {}
  NamedTensors values_;
  Receipt receipt_;
};

using Upload = Release;

class PrivateState {
 public:
  PrivateState() = default;
  explicit PrivateState(NamedTensors values) : values_(std::move(values)) {}
  bool empty() const { return values_.empty(); }
  const NamedTensors& values() const { return values_; }

 private:
  NamedTensors values_;
};

// Who releases, and where it stands in the run.
struct ReleaseContext {
  Ledger& ledger;
  int64_t round;
  int64_t client;
};

// Releases a contribution as it is: for what has no finite sensitivity. The ledger shows it as ε = ∞ with `reason`, and
// so does every report. `what` names the thing released, e.g. "model".
Release in_the_clear(Contribution&& contribution, const ReleaseContext& context, const std::string& what,
                     const std::string& reason);

}  // namespace sotto::privacy
