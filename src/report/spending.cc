#include "report/spending.h"

#include "artifacts/privacy_section.h"
#include "base/json_number.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

namespace sotto::report {
namespace {

using nlohmann::json;
using privacy::Event;
using privacy::Tally;

constexpr size_t kMostPoints = 64;
// A composition of sampled Gaussians takes a few milliseconds; all of them together should take seconds.
constexpr size_t kMostCompositions = 2000;

std::vector<int64_t> rounds_of(const std::vector<Event>& events) {
  std::set<int64_t> rounds;
  for (const Event& event : events) rounds.insert(event.round);
  return {rounds.begin(), rounds.end()};
}

// At most `points` of them, evenly spread, the last among them.
std::vector<int64_t> thinned(const std::vector<int64_t>& rounds, size_t points) {
  if (rounds.size() <= points) return rounds;
  std::vector<int64_t> kept;
  for (size_t i = 1; i <= points; ++i) kept.push_back(rounds[i * rounds.size() / points - 1]);
  return kept;
}

using History = std::vector<Tally>;  // after each of the rounds

// Of each client, with what was released of everyone.
std::vector<History> histories(const std::vector<Event>& events, const std::string& observer, int64_t clients,
                               const std::vector<int64_t>& rounds) {
  privacy::Spending spent(observer, 0);
  std::vector<History> all(static_cast<size_t>(clients));
  size_t next = 0;
  for (const int64_t round : rounds) {
    for (; next < events.size() && events[next].round <= round; ++next) {
      if (events[next].client < clients) spent.take(events[next]);
    }
    for (size_t client = 0; client < all.size(); ++client) {
      all[client].push_back(spent.tally_of(static_cast<int64_t>(client)));
    }
  }
  return all;
}

size_t different(const std::vector<History>& all) {
  std::set<Tally> tallies;
  for (const History& history : all) tallies.insert(history.begin(), history.end());
  return tallies.size();
}

json curves_of(const config::RunSpec& spec, const std::vector<History>& all, privacy::GuaranteeCache& cache) {
  std::map<std::pair<double, History>, std::vector<int64_t>> groups;
  for (size_t client = 0; client < all.size(); ++client) {
    const auto id = static_cast<int64_t>(client);
    groups[{spec.privacy ? spec.privacy->budget_of(id) : 0.0, all[client]}].push_back(id);
  }
  json curves = json::array();
  for (const auto& [key, clients] : groups) {
    json curve = {{"clients", clients},
                  {"budget", spec.privacy ? json(key.first) : json(nullptr)},
                  {"claimed", json::array()},
                  {"proven", json::array()}};
    for (const Tally& tally : key.second) {
      const privacy::Guarantee guarantee = cache(tally, artifacts::accounted_delta(spec));
      curve["claimed"].push_back(number_or_null(guarantee.claimed));
      curve["proven"].push_back(number_or_null(guarantee.proven));
    }
    curves.push_back(std::move(curve));
  }
  std::sort(curves.begin(), curves.end(), [](const json& a, const json& b) { return a["clients"] < b["clients"]; });
  return curves;
}

}  // namespace

std::vector<Tally> tallies_after(const std::vector<Event>& events, const std::string& observer, int64_t clients,
                                 int64_t round) {
  std::vector<Tally> last;
  for (History& history : histories(events, observer, clients, {round})) last.push_back(std::move(history.back()));
  return last;
}

json spending_over_time(const config::RunSpec& spec, const std::vector<Event>& events, privacy::GuaranteeCache& cache) {
  const int64_t clients = std::min(spec.data.clients, kListedClients);
  const std::vector<int64_t> all_rounds = rounds_of(events);
  size_t points = kMostPoints;
  std::vector<int64_t> rounds = thinned(all_rounds, points);
  std::vector<History> server = histories(events, "server", clients, rounds);
  while (points > 2 && different(server) > kMostCompositions) {
    points /= 2;
    rounds = thinned(all_rounds, points);
    server = histories(events, "server", clients, rounds);
  }
  const bool all_see_the_same = std::all_of(events.begin(), events.end(),
                                            [](const Event& event) { return privacy::is_seen_by(event, "public"); });
  json views = json::array();
  const auto add = [&](std::vector<std::string> observers, const std::vector<History>& seen) {
    views.push_back(
        {{"observers", std::move(observers)}, {"rounds", rounds}, {"curves", curves_of(spec, seen, cache)}});
  };
  if (all_see_the_same) {
    add({"server", "clients", "public"}, server);
  } else {
    add({"server"}, server);
    add({"clients", "public"}, histories(events, "public", clients, rounds));
  }
  return views;
}

json noise_by_group(const std::vector<Event>& events) {
  struct Range {
    double least = INFINITY;
    double most = 0;
    void add(double value) {
      least = std::min(least, value);
      most = std::max(most, value);
    }
    json to_json() const { return {{"min", least}, {"max", most}}; }
  };
  struct Noise {
    int64_t coordinates = 0;
    Range sensitivity, stddev;
  };
  std::map<std::tuple<std::string, int64_t>, const Event*> last;
  for (const Event& event : events) {
    if (event.noise_scale > 0) last[{event.what, event.client}] = &event;
  }
  std::map<std::pair<std::string, std::string>, Noise> noises;
  for (const auto& [key, event] : last) {
    const json parameters = json::parse(event->parameters, nullptr, false);
    if (!parameters.is_object() || !parameters.contains("groups")) continue;
    for (const json& group : parameters["groups"]) {
      Noise& noise = noises[{event->what, group["group"].get<std::string>()}];
      noise.coordinates = group["coordinates"];
      noise.sensitivity.add(group["sensitivity"]);
      noise.stddev.add(group["stddev"]);
    }
  }
  json rows = json::array();
  for (const auto& [key, noise] : noises) {
    rows.push_back({{"what", key.first},
                    {"group", key.second},
                    {"coordinates", noise.coordinates},
                    {"sensitivity", noise.sensitivity.to_json()},
                    {"stddev", noise.stddev.to_json()}});
  }
  return rows;
}

json release_kinds(const std::vector<Event>& events) {
  struct Kind {
    int64_t rows = 0;
    std::set<int64_t> clients = {};
    double least = INFINITY;
    double most = 0;
  };
  std::map<std::tuple<std::string, std::string, std::string, std::string>, Kind> kinds;
  for (const Event& event : events) {
    Kind& kind = kinds[{event.what, event.observer, event.mechanism, event.why_unproven}];
    ++kind.rows;
    kind.clients.insert(event.client);
    if (event.sensitivity == 0) continue;
    kind.least = std::min(kind.least, event.noise_scale / event.sensitivity);
    kind.most = std::max(kind.most, event.noise_scale / event.sensitivity);
  }
  json rows = json::array();
  for (const auto& [key, kind] : kinds) {
    const auto& [what, observer, mechanism, why] = key;
    rows.push_back(
        {{"what", what},
         {"observer", observer},
         {"mechanism", mechanism},
         {"rows", kind.rows},
         {"clients", kind.clients.contains(privacy::kEveryone) ? json("everyone") : json(kind.clients.size())},
         {"multiplier", kind.most > 0 ? json{{"min", kind.least}, {"max", kind.most}} : json(nullptr)},
         {"why_unproven", why.empty() ? json(nullptr) : json(why)}});
  }
  return rows;
}

}  // namespace sotto::report
