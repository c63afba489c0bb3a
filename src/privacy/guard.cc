#include "privacy/guard.h"

#include "base/error.h"
#include "base/files.h"
#include "base/printable.h"
#include "io/safetensors.h"
#include "privacy/accounting/accountant.h"
#include "privacy/calibration.h"
#include "privacy/channel.h"
#include "privacy/spending.h"

#include <c10/util/accumulate.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <cmath>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace sotto::privacy {
namespace {

using nlohmann::json;

constexpr const char* kRun = "guard";
constexpr int64_t kSelf = 0;

std::string note_of(const std::string& key) {
  return "released " + sha256(key);
}

void require_sound(const GuardedRelease& request, const NamedTensors& values, Unit unit) {
  const std::string what = printable(request.what);
  if (request.what.empty()) fail_user("say what is released: its name is empty");
  if (request.key.empty()) fail_user("{}: the key is empty; a release is known by its key", what);
  const auto require_positive = [&](const char* name, double value) {
    if (!(value > 0 && std::isfinite(value))) fail_user("{}: {} must be above 0, not {}", what, name, value);
  };
  require_positive("bound", request.bound);
  require_positive("noise_multiplier", request.noise_multiplier);
  require_positive("divisor", request.divisor);
  if (!request.per_record && request.divisor != 1) {
    fail_user("{}: divisor is for releases per record: leave it out", what);
  }
  if (request.per_record && unit == Unit::kClient) {
    fail_user("{}: the home promises whole clients, and clipping each record bounds one record only", what);
  }
  if (values.empty()) fail_user("{}: there is nothing to release", what);
  std::set<std::string_view> names;
  for (const auto& [name, value] : values) {
    if (!names.insert(name).second) fail_user("{}: two tensors are called '{}'", what, printable(name));
    if (name == io::kMetadata) fail_user("{}: no tensor may be called '{}'", what, printable(name));
    if (!at::isFloatingType(value.scalar_type())) {
      fail_user("{}: tensor '{}' must hold floating-point numbers", what, printable(name));
    }
    if (request.per_record && (value.dim() < 2 || value.size(0) != values.front().value.size(0))) {
      fail_user("{}: per record, every tensor is [records, …] with as many records; '{}' is not", what,
                printable(name));
    }
  }
}

int64_t coordinates_of(const NamedTensors& values, bool per_record) {
  int64_t count = 0;
  for (const auto& [name, value] : values) {
    count += c10::multiply_integers(value.sizes().slice(per_record ? 1 : 0));
  }
  return count;
}

// Copies, which clipping may change.
NamedTensors as_floats(const NamedTensors& values) {
  NamedTensors floats;
  for (const auto& [name, value] : values) {
    floats.push_back({name, value.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true).contiguous()});
  }
  return floats;
}

// What the key stands for: all that is public of a release.
std::string terms_of(const GuardedRelease& request, const NamedTensors& values) {
  json shapes = json::array();
  for (const auto& [name, value] : values) {
    std::vector<int64_t> shape = value.sizes().vec();
    if (request.per_record) shape.erase(shape.begin());
    shapes.push_back({name, shape});
  }
  try {
    return json::array(
               {request.what, request.bound, request.noise_multiplier, request.per_record, request.divisor, shapes})
        .dump();
  } catch (const json::exception&) {
    fail_user("a release whose name, or that of a tensor, is not UTF-8 cannot be written down");
  }
}

}  // namespace

double sensitivity_of(const GuardedRelease& request, const Neighbours& neighbours) {
  if (request.per_record) return sum_sensitivity(request.bound, neighbours.adjacency) / request.divisor;
  return neighbours.unit == Unit::kRecord ? 2 * request.bound : sum_sensitivity(request.bound, neighbours.adjacency);
}

Bounded bounded(const GuardedRelease& request, const Neighbours& neighbours, NamedTensors values) {
  const std::vector<ClipRule> rules = {{request.what, static_cast<int64_t>(values.size()), request.bound}};
  Contribution contribution(std::move(values));
  return request.per_record ? clip_each(std::move(contribution), rules, request.divisor, neighbours.adjacency)
                            : clip_whole(std::move(contribution), rules, neighbours);
}

Guard::Guard(const fs::path& home, const std::string& records)
    : home_(home, {.name = records, .content = sha256(records), .dealt = kRun, .clients = 1}), process_(::getpid()) {
  make_folder(home_.folder() / "released");
}

void Guard::require_own_process() const {
  if (::getpid() == process_) return;
  fail_user("the guard of {} was opened before this process was forked; open a guard in the process that releases",
            home_.folder().string());
}

fs::path Guard::file_of(const std::string& key) const {
  return home_.folder() / "released" / (sha256(key).substr(0, 32) + ".safetensors");
}

std::optional<NamedTensors> Guard::released_before(const GuardedRelease& request, const std::string& terms) const {
  const std::string note = home_.ledger().note(note_of(request.key));
  if (note.empty()) return std::nullopt;
  const json sealed = json::parse(note);
  if (sealed.at("terms") != terms) {
    fail_user("the key '{}' was used for another release; a new release needs a new key", printable(request.key));
  }
  const fs::path file = file_of(request.key);
  if (!fs::exists(file) || sha256_of_file(file) != sealed.at("digest").get<std::string>()) {
    fail_user("{} is not what was released under '{}'; put it back from a backup", file.string(),
              printable(request.key));
  }
  return io::read_safetensors(file).tensors;
}

NamedTensors Guard::release(const GuardedRelease& request, const NamedTensors& values) {
  require_own_process();
  const Neighbours neighbours = home_.terms().neighbours();
  require_sound(request, values, neighbours.unit);
  const std::string terms = terms_of(request, values);
  const std::lock_guard lock(mutex_);
  if (auto before = released_before(request, terms)) return std::move(*before);

  const Group group{.name = request.what,
                    .tensors = static_cast<int64_t>(values.size()),
                    .coordinates = coordinates_of(values, request.per_record),
                    .sensitivity = sensitivity_of(request, neighbours)};
  const Channel channel =
      Channel::gaussian(request.what, home_.terms().observer,
                        GroupwiseGaussian::calibrated(request.noise_multiplier, {group}), neighbours);
  Ledger ledger;
  ledger.charge_as(home_, kRun, kSelf);
  try {
    const Release made = channel.release(
        {.ledger = ledger, .round = home_.ledger().rows() + 1, .client = kSelf, .generator = Generator::kSecure},
        [&] { return bounded(request, neighbours, as_floats(values)); });
    const fs::path file = file_of(request.key);
    io::write_safetensors(file, {.tensors = made.values(), .metadata = {}});
    home_.ledger().set_note(note_of(request.key), json{{"terms", terms}, {"digest", sha256_of_file(file)}}.dump());
    home_.commit();
    return made.values();
  } catch (...) {
    home_.forget_uncommitted();
    throw;
  }
}

double Guard::multiplier_for(double epsilon) const {
  require_valid_epsilon(epsilon);
  return noise_multiplier_for(epsilon, home_.terms().delta, 1, 1, home_.terms().adjacency);
}

double Guard::spent() const {
  require_own_process();
  const auto guarantees =
      privacy::guarantees(home_.ledger(), settings::word(home_.terms().observer), 1, home_.terms().delta);
  return guarantees.front().proven;
}

int64_t Guard::releases() const {
  require_own_process();
  return home_.ledger().rows();
}

}  // namespace sotto::privacy
