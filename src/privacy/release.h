// What may leave a client.
//
//   Release            what a mechanism made of bounded values, paid for in the ledger. Only this folder makes one.
//   Trusted<Bounded>   bounded values for a server that the config declares trusted: the server sees them, and makes
//                      the Release for everybody else.
//   Upload             one or the other.
//
// So nothing reaches a server, a transcript or a report unless the ledger has a row for it.
#pragma once

#include "privacy/bounded.h"
#include "privacy/event.h"
#include "privacy/noise/noise_source.h"
#include "privacy/terms.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace sotto::privacy {

class Ledger;

// Proof that the ledger holds a row for a release, and of what that row promises. For one use.
class Receipt {
 public:
  int64_t row() const { return row_; }
  double noise_scale() const { return noise_scale_; }
  double sensitivity() const { return sensitivity_; }
  Receipt(Receipt&&) = default;
  Receipt& operator=(Receipt&&) = default;
  Receipt(const Receipt&) = delete;
  Receipt& operator=(const Receipt&) = delete;

 private:
  friend class Ledger;
  friend class Access;
  Receipt(int64_t row, double noise_scale, double sensitivity)
      : row_(row), noise_scale_(noise_scale), sensitivity_(sensitivity) {}
  int64_t row_;
  double noise_scale_;
  double sensitivity_;
};

class Release {
 public:
  const NamedTensors& values() const { return values_; }
  const Receipt& receipt() const { return receipt_; }

 private:
  friend class Access;
  friend class PostProcessing;
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
  // Its row in the ledger of this process; 0 if another process has paid for it.
  int64_t row() const;
  // The bounded values, if that is what it is; otherwise null.
  const Trusted<Bounded>* trusted() const { return std::get_if<Trusted<Bounded>>(&content_); }

 private:
  std::variant<Release, Trusted<Bounded>> content_;
};

// Who releases, where it stands in the run, and where noise comes from.
struct ReleaseContext {
  Ledger& ledger;
  int64_t round = 0;
  int64_t client = 0;
  Generator generator = Generator::kReplay;
  uint64_t seed = 0;              // of replayed noise
  std::string why_unproven = {};  // why nothing of this run can be proven; empty if it can

  // A fresh generator for one purpose of the release that `receipt` is for. Replayed noise depends on seed, purpose,
  // round and client alone; the ledger sees to it that two releases never draw the same.
  NoiseSource noise_source(const Receipt& receipt, std::string_view purpose) const;
  // The same for noise that nothing is charged for: it is added to what is released already.
  NoiseSource post_processing_noise(std::string_view purpose) const;
};

// A tensor that may stand beside what was released, because it is no secret.
class Disclosed {
 public:
  // The row of the ledger notes it (Channel::noting), so that it is there for everybody to see.
  static Disclosed noted(const Event& terms, const std::string& key);
  // It follows from the label histogram, which is public under replace-same-label, or it is why nothing is proven of the
  // release that `terms` describe; with other terms it is an internal error.
  static Disclosed beside(const Event& terms, at::Tensor value);
  const at::Tensor& value() const { return value_; }

 private:
  explicit Disclosed(at::Tensor value) : value_(std::move(value)) {}
  at::Tensor value_;
};

// What a function that works on releases may be given: numbers, words, and tensors that were disclosed. A bare tensor
// is not among them.
template <typename T>
inline constexpr bool kMayStandBesideARelease =
    std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::string> || std::is_same_v<T, Disclosed> ||
    std::is_same_v<T, std::vector<Disclosed>>;

// Another form of what was released. `change` is a plain function: it sees the release and the public values that are
// written down beside it, and nothing else, so that it costs nothing.
class PostProcessing {
 public:
  template <typename... Public>
  requires(kMayStandBesideARelease<Public>&&...) static Release
      apply(Release&& release, NamedTensors (*change)(const NamedTensors&, const Public&...),
            const std::type_identity_t<Public>&... values) {
    NamedTensors changed = change(release.values_, values...);
    return Release(std::move(changed), std::move(release.receipt_));
  }
};

template <typename... Public>
requires(kMayStandBesideARelease<Public>&&...) Release
    post_process(Release&& release, NamedTensors (*change)(const NamedTensors&, const Public&...),
                 const std::type_identity_t<Public>&... values) {
  return PostProcessing::apply<Public...>(std::move(release), change, values...);
}

// Leave to hand bounded values to the server; only a config that declares the server trusted gives it.
class TrustedServer {
 public:
  // A UserError if [privacy] does not protect against clients or the public (observer), or is absent. `method` is who
  // asks.
  static TrustedServer declared_by(const std::optional<PrivacyTerms>& terms, const std::string& method);

 private:
  TrustedServer() = default;
};

inline constexpr const char* kTrustedReason = "the server is trusted with bounded values without noise";

// The sum, in doubles, of what clients handed over in a round; zeros if nobody did. One client more, less or other moves it by as
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
