#include "base/files.h"
#include "base/text.h"
#include "library/boundary.h"
#include "privacy/guard.h"
#include "privacy/home.h"
#include "privacy/spending.h"
#include "settings/section.h"

#include <nlohmann/json.hpp>
#include <sotto/privacy.h>

#include <algorithm>
#include <memory>

namespace sotto {

struct Guard::Inside {
  privacy::Guard guard;
};

struct Ledger::Inside {
  privacy::Ledger ledger;
};

namespace {

constexpr const char* kLedgerName = "ledger.sqlite";

privacy::Guard open_guard(const GuardOptions& options) {
  if (options.budget) {
    const nlohmann::json words = {{"epsilon", options.budget->epsilon},
                                  {"delta", options.budget->delta},
                                  {"adjacency", privacy::to_text(to_engine(options.budget->adjacency))}};
    const settings::Source where{.file = "the budget for " + options.home.string(), .line = {}};
    privacy::Home::promise(options.home, {words, "", std::make_shared<settings::Source>(where)});
  }
  return privacy::Guard(options.home, options.records);
}

privacy::Observer observer_of(const std::string& word) {
  const std::vector<std::string> known = settings::words<privacy::Observer>();
  if (std::find(known.begin(), known.end(), word) == known.end()) {
    fail_user("there is no observer '{}'{}; there are {}", word, did_you_mean(word, known), join(known, ", "));
  }
  return settings::from_word<privacy::Observer>(word);
}

LedgerRow row_of(const privacy::Event& event) {
  return {.round = event.round,
          .client = event.client,
          .observer = event.observer,
          .what = event.what,
          .mechanism = event.mechanism,
          .why_unproven = event.why_unproven,
          .noise_scale = event.noise_scale,
          .sensitivity = event.sensitivity,
          .steps = event.steps};
}

}  // namespace

Guard::Guard(const GuardOptions& options)
    : inside_(for_program([&] { return std::unique_ptr<Inside>(new Inside{open_guard(options)}); })) {}

Guard::~Guard() = default;
Guard::Guard(Guard&&) noexcept = default;
Guard& Guard::operator=(Guard&&) noexcept = default;

Tensors Guard::release(const Release& request, const Tensors& values) {
  return for_program([&] {
    return to_public(inside_->guard.release({.what = request.what,
                                             .key = request.key,
                                             .bound = request.bound,
                                             .noise_multiplier = request.noise_multiplier,
                                             .per_record = request.per_record,
                                             .divisor = request.divisor},
                                            to_engine(values)));
  });
}

double Guard::multiplier_for(double epsilon) const {
  return for_program([&] { return inside_->guard.multiplier_for(epsilon); });
}

double Guard::budget() const {
  return inside_->guard.budget();
}

double Guard::spent() const {
  return for_program([&] { return inside_->guard.spent(); });
}

int64_t Guard::releases() const {
  return for_program([&] { return inside_->guard.releases(); });
}

Ledger::Ledger(const fs::path& place)
    : inside_(for_program([&] {
        const fs::path file = fs::is_directory(place) ? place / kLedgerName : place;
        return std::unique_ptr<Inside>(new Inside{privacy::Ledger(file, privacy::Ledger::Mode::kRead)});
      })) {}

Ledger::~Ledger() = default;
Ledger::Ledger(Ledger&&) noexcept = default;
Ledger& Ledger::operator=(Ledger&&) noexcept = default;

std::vector<LedgerRow> Ledger::rows() const {
  return for_program([&] {
    std::vector<LedgerRow> rows;
    for (const privacy::Event& event : inside_->ledger.events()) rows.push_back(row_of(event));
    return rows;
  });
}

void Ledger::verify() const {
  for_program([&] { inside_->ledger.verify_chain(); });
}

Spent Ledger::spent(int64_t client, double delta, const std::string& observer) const {
  return for_program([&]() -> Spent {
    privacy::require_valid_delta(delta);
    if (client < 0) fail_user("client {}: they are counted from 0", client);
    const std::string seen_by = settings::word(observer_of(observer));
    const privacy::Guarantee guarantee = privacy::guarantees(inside_->ledger, seen_by, client + 1, delta).back();
    return {
        .claimed = guarantee.claimed, .proven = guarantee.proven, .why_unproven = join(guarantee.why_unproven, "; ")};
  });
}

}  // namespace sotto
