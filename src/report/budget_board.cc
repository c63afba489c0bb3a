#include "report/budget_board.h"

#include "artifacts/privacy_section.h"
#include "base/error.h"
#include "base/json_number.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace sotto::report {
namespace {

using nlohmann::json;
using privacy::Event;
using privacy::Tally;

// As the ledger's: ε is rounded up on both sides of a comparison with a budget that was used to calibrate it.
constexpr double kTolerance = 1e-9;

// What each client's last round cost; of everyone's releases, the last round's count for all.
class Prices {
 public:
  Prices(const std::vector<Event>& events, const std::string& observer) {
    std::map<int64_t, int64_t> last;
    for (const Event& event : events) last[event.client] = std::max(last[event.client], event.round);
    for (const Event& event : events) {
      if (event.round == last[event.client] && privacy::is_seen_by(event, observer)) tallies_[event.client].add(event);
    }
  }

  Tally of(int64_t client) const {
    Tally price;
    const auto everyone = tallies_.find(privacy::kEveryone);
    if (everyone != tallies_.end()) price.add(everyone->second);
    auto own = tallies_.find(client);
    if (own == tallies_.end()) own = tallies_.upper_bound(privacy::kEveryone);
    if (own != tallies_.end()) price.add(own->second);
    return price;
  }

 private:
  std::map<int64_t, Tally> tallies_;
};

Tally repeated(Tally unit, int64_t times) {
  Tally all;
  for (; times > 0; times /= 2) {
    if (times % 2 == 1) all.add(unit);
    unit.add(Tally(unit));
  }
  return all;
}

// The most rounds that fit.
int64_t affordable(const std::function<bool(int64_t)>& fits) {
  if (!fits(1)) return 0;
  int64_t fitting = 1, too_many = 2;
  while (too_many <= kMostRounds && fits(too_many)) {
    fitting = too_many;
    too_many *= 2;
  }
  too_many = std::min(too_many, kMostRounds + 1);
  while (too_many - fitting > 1) {
    const int64_t middle = fitting + (too_many - fitting) / 2;
    (fits(middle) ? fitting : too_many) = middle;
  }
  return fitting;
}

void check_same_terms(const std::vector<Event>& events, const std::vector<Event>& price) {
  const auto noised = [](const std::vector<Event>& all) {
    return std::find_if(all.begin(), all.end(), [](const Event& event) { return event.sensitivity > 0; });
  };
  const auto mine = noised(events), theirs = noised(price);
  if (mine == events.end() || theirs == price.end()) return;
  if (mine->neighbours != theirs->neighbours) {
    fail_user("the two runs protect different things: their adjacency or unit differs, so their costs do not add up");
  }
}

}  // namespace

json budget_board(const config::RunSpec& spec, const std::vector<Event>& events, const std::vector<Event>& price,
                  privacy::GuaranteeCache& cache) {
  check_same_terms(events, price);
  const bool by_claim = spec.as_printed();
  const double delta = artifacts::accounted_delta(spec);
  const std::string observer = artifacts::declared_observer(spec);
  const auto cost = [&](const Tally& tally) {
    const privacy::Guarantee guarantee = cache(tally, delta);
    return by_claim ? guarantee.claimed : guarantee.proven;
  };
  const Prices prices(price, observer);
  const std::vector<Tally> spent =
      tallies_after(events, observer, std::min(spec.data.clients, kListedClients), std::numeric_limits<int64_t>::max());
  std::map<std::tuple<Tally, Tally, double>, int64_t> known;
  json rows = json::array();
  for (size_t i = 0; i < spent.size(); ++i) {
    const auto client = static_cast<int64_t>(i);
    const double used = cost(spent[i]);
    json row = {{"client", client},
                {"name", spec.client_name(client)},
                {"spent", number_or_null(used)},
                {"budget", nullptr},
                {"left", nullptr},
                {"rounds", nullptr},
                {"more", false},
                {"why", nullptr}};
    const Tally unit = prices.of(client);
    if (!spec.privacy) {
      row["why"] = "the run has no budgets";
    } else {
      const double budget = spec.privacy->budget_of(client);
      row["budget"] = budget;
      row["left"] = std::isfinite(used) ? json(std::max(0.0, budget - used)) : json(nullptr);
      if (unit.empty()) {
        row["why"] = "a round releases nothing that is noised";
      } else if (!std::isfinite(used) || !std::isfinite(cost(unit))) {
        row["why"] = "released without noise: outside any budget";
      } else {
        const auto fits = [&](int64_t rounds) {
          Tally total = spent[i];
          total.add(repeated(unit, rounds));
          return cost(total) <= budget * (1 + kTolerance);
        };
        const std::tuple key(spent[i], unit, budget);
        const auto found = known.find(key);
        const int64_t rounds = found != known.end() ? found->second : (known[key] = affordable(fits));
        row["rounds"] = rounds;
        row["more"] = rounds == kMostRounds;
      }
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace sotto::report
