// What may leave a client.
//
//   Release            what a mechanism made of bounded values, paid for in the ledger. Only this folder makes one.
//   Trusted<Bounded>   bounded values for a server that the config declares trusted: the server sees them, and makes
//   the
//                      Release for everybody else.
//   Upload             one or the other.
//
// So nothing reaches a server, a transcript or a report unless the ledger has a row for it.
#pragma once

#include "privacy/bounded.h"
#include "privacy/event.h"
#include "privacy/noise/noise_source.h"

#include <cstdint>
#include <functional>
#include <string>
#include <variant>

namespace sotto::privacy {

class Ledger;

// Proof that the ledger holds a row for a release, and of what that row promises. For one use.
class Receipt {
 public:
  int64_t row() const { return row_; }
  double noise() const { return noise_; }
  double sensitivity() const { return sensitivity_; }
  Receipt(Receipt&&) = default;
  Receipt& operator=(Receipt&&) = default;
  Receipt(const Receipt&) = delete;
  Receipt& operator=(const Receipt&) = delete;

 private:
  friend class Ledger;
  Receipt(int64_t row, double noise, double sensitivity) : row_(row), noise_(noise), sensitivity_(sensitivity) {}
  int64_t row_;
  double noise_;
  double sensitivity_;
};

class Release {
 public:
  const NamedTensors& values() const { return values_; }
  const Receipt& receipt() const { return receipt_; }

 private:
  friend class Access;
  friend Release post_process(Release&&, const std::function<NamedTensors(const NamedTensors&)>&);
  Release(NamedTensors values, Receipt receipt) : values_(std::move(values)), receipt_(std::move(receipt)) {}
  NamedTensors values_;
  Receipt receipt_;
};

template <typename T>
class Trusted {
 public:
  const NamedTensors& values() const { return value_.values_; }
  const T& value() const { return value_; }
  const Receipt& receipt() const { return receipt_; }

 private:
  friend class Access;
  Trusted(T value, Receipt receipt) : value_(std::move(value)), receipt_(std::move(receipt)) {}
  T value_;
  Receipt receipt_;
};

class Upload {
 public:
  Upload(Release release) : content_(std::move(release)) {}           // NOLINT(google-explicit-constructor)
  Upload(Trusted<Bounded> trusted) : content_(std::move(trusted)) {}  // NOLINT(google-explicit-constructor)

  // What the server sees.
  const NamedTensors& values() const;
  // The bounded values, if that is what it is; otherwise null.
  const Trusted<Bounded>* trusted() const { return std::get_if<Trusted<Bounded>>(&content_); }

 private:
  std::variant<Release, Trusted<Bounded>> content_;
};

enum class NoiseKind { kReplay, kSecure };

// Who releases, where it stands in the run, and where noise comes from.
struct ReleaseContext {
  Ledger& ledger;
  int64_t round = 0;
  int64_t client = 0;
  NoiseKind noise = NoiseKind::kReplay;
  uint64_t seed = 0;           // of replayed noise
  int64_t participations = 1;  // in how many rounds of the run this client takes part
  int64_t participation = 1;   // which of them this is, from 1

  // A fresh generator for the noise of one release; replayed noise depends on seed, `what`, round and client alone.
  NoiseSource noise_source(std::string_view what) const;
};

// Releases a contribution as it is: for what has no finite sensitivity. The ledger shows it as ε = ∞ with `reason`, and
// so does every report. `what` names the thing released, e.g. "model".
Release in_the_clear(Contribution&& contribution, const ReleaseContext& context, const std::string& what,
                     const std::string& reason);

// Another form of what was released. `change` sees nothing but the release, so that it costs nothing.
Release post_process(Release&& release, const std::function<NamedTensors(const NamedTensors&)>& change);

// Leave to hand bounded values to the server; only a config that declares the server trusted gives it.
class TrustedServer {
 public:
  // A UserError if [privacy] does not protect against clients or the public (observer), or is absent.
  static TrustedServer declared_by(const config::RunSpec& spec);

 private:
  TrustedServer() = default;
};

// For the observer `server` this is ε = ∞; for everybody else it is nothing until the server releases it.
inline constexpr const char* kTrustedReason = "the server is trusted with bounded values without noise";
Trusted<Bounded> hand_over(Bounded&& bounded, const TrustedServer& server, const ReleaseContext& context,
                           const std::string& what);

// The sum of what clients handed over in a round; zeros if nobody did. One client more, less or other moves it by as
// much as that client's own value may move.
class BoundedSum {
 public:
  // `like` gives names and shapes; `groups` what every client's value must be bounded by.
  BoundedSum(const NamedTensors& like, std::vector<Group> groups);
  void add(const Trusted<Bounded>& value);
  int64_t count() const { return count_; }
  // Empties the sum. The tensors of the Bounded are this object's own, to be reused: release it before adding again.
  Bounded take();

 private:
  NamedTensors sum_;
  std::vector<Group> groups_;
  int64_t count_ = 0;
  bool taken_ = true;
};

}  // namespace sotto::privacy
