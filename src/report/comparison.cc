#include "report/comparison.h"

#include "artifacts/privacy_section.h"
#include "base/json_number.h"
#include "base/statistics.h"
#include "base/text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <sstream>
#include <tuple>

namespace sotto::report {
namespace {

using nlohmann::json;

constexpr const char* kMetrics[] = {"accuracy/mean",          "accuracy/worst",           "accuracy_global",
                                    "balanced_accuracy/mean", "balanced_accuracy_global", "auroc/mean",
                                    "auroc_global",           "global_test_accuracy/mean"};

constexpr size_t kMostDifferences = 3;

// Settings by their full name, without the seed and what follows from it.
json flat_settings(config::RunSpec spec) {
  if (spec.privacy && spec.privacy->budget_seed == spec.seed) spec.privacy->budget_seed = 0;
  spec.seed = 0;
  spec.name.clear();
  spec.client_names.clear();
  spec.record = {};
  return spec.to_json().flatten();
}

// /privacy/budgets/1 → privacy.budgets
std::string key_of(const std::string& pointer) {
  std::vector<std::string> parts;
  for (const std::string& part : split(pointer.substr(1), '/')) {
    if (part.empty() || std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; })) break;
    parts.push_back(part);
  }
  return join(parts, ".");
}

bool is_epsilon(const std::string& key) {
  return key == "privacy.epsilon" || key == "privacy.budgets" || key == "privacy.budget_shares";
}

std::string text_of(const json& value) {
  if (value.is_null() || (value.is_structured() && value.empty())) return "none";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// The settings under each key as one text: a list is a setting, not its entries.
std::map<std::string, std::string> settings_of(const json& flat) {
  std::map<std::string, std::string> settings;
  for (const auto& [pointer, value] : flat.items()) {
    std::string& text = settings[key_of(pointer)];
    if (!text.empty()) text += ' ';
    text += text_of(value);
  }
  return settings;
}

// "ε 4", or "ε 0.5 to 8" where clients have budgets of their own; "" without any.
std::string epsilon_of(const std::map<std::string, std::string>& settings) {
  const auto stated = settings.find("privacy.epsilon"), own = settings.find("privacy.budgets");
  if (stated == settings.end()) return "";
  if (own == settings.end() || own->second == "none") return "ε " + stated->second;
  std::istringstream numbers(own->second);
  const std::vector<double> budgets{std::istream_iterator<double>(numbers), {}};
  if (budgets.empty()) return "ε " + own->second;
  const auto [least, most] = std::minmax_element(budgets.begin(), budgets.end());
  return *least == *most ? fmt::format("ε {}", *most) : fmt::format("ε {} to {}", *least, *most);
}

// Of the settings under these keys, at most `most` besides method and ε.
std::string label_of(const std::map<std::string, std::string>& settings, const std::set<std::string>& keys,
                     size_t most = kMostDifferences) {
  std::vector<std::string> parts;
  const auto add = [&](const std::string& key) {
    const auto found = settings.find(key);
    const std::string value = found == settings.end() ? "none" : found->second;
    const bool speaks_for_itself =
        key == "method.name" || key == "method.variant" || key == "data.name" || key == "model.name";
    const std::string last = key.substr(key.rfind('.') + 1);
    parts.push_back(speaks_for_itself ? value : fmt::format("{} {}", last, value));
  };
  // Method and ε first, then what differs, of which a legend has room for little.
  if (keys.contains("method.name")) add("method.name");
  if (std::any_of(keys.begin(), keys.end(), is_epsilon) && !epsilon_of(settings).empty()) {
    parts.push_back(epsilon_of(settings));
  }
  size_t differences = 0;
  for (const std::string& key : keys) {
    if (key != "method.name" && !is_epsilon(key) && ++differences <= most) add(key);
  }
  if (differences > most) parts.push_back(fmt::format("… {} more", differences - most));
  return join(parts, ", ");
}

// What differs between methods only because they are different methods tells nothing more than their name.
std::set<std::string> telling_keys(const std::vector<std::map<std::string, std::string>>& groups) {
  std::set<std::string> all;
  for (const auto& settings : groups) {
    for (const auto& [key, value] : settings) all.insert(key);
  }
  std::set<std::string> telling;
  const auto value_in = [](const std::map<std::string, std::string>& settings, const std::string& key) {
    const auto found = settings.find(key);
    return found == settings.end() ? std::string() : found->second;
  };
  for (const std::string& key : all) {
    const bool own_to_the_method = key.starts_with("method.") && key != "method.name";
    for (size_t a = 0; a < groups.size() && !telling.contains(key); ++a) {
      for (size_t b = 0; b < a; ++b) {
        const bool same_method = value_in(groups[a], "method.name") == value_in(groups[b], "method.name");
        if (own_to_the_method && !same_method && key != "method.variant") continue;
        if (key.starts_with("privacy.") &&
            (!groups[a].contains("privacy.delta") || !groups[b].contains("privacy.delta")))
          continue;
        if (value_in(groups[a], key) != value_in(groups[b], key)) telling.insert(key);
      }
    }
  }
  // Beside one that promises nothing, what is promised tells as much.
  const auto promises = [](const auto& settings) { return settings.contains("privacy.epsilon"); };
  const auto count = static_cast<size_t>(std::count_if(groups.begin(), groups.end(), promises));
  if (count > 0 && count < groups.size()) telling.insert("privacy.epsilon");
  return telling;
}

// The largest of any client and seed; null once there is one without a finite ε, or none at all.
json largest(const std::vector<json>& documents, const std::vector<size_t>& runs, const char* key) {
  double most = -1;
  for (const size_t run : runs) {
    const json& summary = documents[run]["summary"];
    if (summary.is_null()) continue;
    const json& spread = summary["privacy"][key];
    if (spread.is_null()) return nullptr;
    most = std::max(most, spread["max"].get<double>());
  }
  return most < 0 ? json(nullptr) : json(most);
}

privacy::Basis weakest_basis(const std::vector<json>& documents, const std::vector<size_t>& runs) {
  privacy::Basis weakest = privacy::Basis::kProven;
  for (const size_t run : runs) {
    const json& summary = documents[run]["summary"];
    if (summary.is_null()) continue;
    weakest =
        privacy::weaker(weakest, settings::from_word<privacy::Basis>(summary["privacy"]["basis"].get<std::string>()));
  }
  return weakest;
}

using Values = std::vector<std::vector<double>>;

json metric_json(const Values& values) {
  json metric = {{"values", values}, {"mean", json::array()}, {"std", json::array()}, {"p", json::array()}};
  for (const auto& mine : values) {
    metric["mean"].push_back(mine.empty() ? json(nullptr) : json(mean(mine)));
    metric["std"].push_back(mine.size() < 2 ? json(nullptr) : json(sample_std(mine)));
    json row = json::array();
    for (const auto& theirs : values) {
      const bool testable = mine.size() > 1 && theirs.size() > 1;  // one seed is no sample
      row.push_back(testable ? number_or_null(mann_whitney_p(mine, theirs)) : json(nullptr));
    }
    metric["p"].push_back(std::move(row));
  }
  return metric;
}

}  // namespace

json compare(const std::vector<json>& documents, const std::vector<config::RunSpec>& specs) {
  std::vector<json> flats;
  std::vector<std::vector<size_t>> members;
  for (size_t run = 0; run < specs.size(); ++run) {
    const json flat = flat_settings(specs[run]);
    const auto place = static_cast<size_t>(std::find(flats.begin(), flats.end(), flat) - flats.begin());
    if (place == flats.size()) {
      flats.push_back(flat);
      members.emplace_back();
    }
    members[place].push_back(run);
  }
  // Methods together, by rising ε.
  std::vector<size_t> order(members.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto rank = [&](size_t group) {
    const config::RunSpec& spec = specs[members[group].front()];
    return std::tuple(spec.method, spec.variant, spec.privacy ? spec.privacy->epsilon : 0.0);
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rank(a) < rank(b); });
  std::vector<std::vector<size_t>> sorted_members;
  std::vector<std::map<std::string, std::string>> settings;
  for (const size_t group : order) {
    sorted_members.push_back(members[group]);
    settings.push_back(settings_of(flats[group]));
  }
  members = std::move(sorted_members);
  const std::set<std::string> keys = telling_keys(settings);
  std::set<std::string> without_epsilon;
  for (const std::string& key : keys) {
    if (!is_epsilon(key)) without_epsilon.insert(key);
  }

  json groups = json::array();
  for (size_t group = 0; group < members.size(); ++group) {
    const std::string method = settings[group]["method.name"];
    std::string label = label_of(settings[group], keys), series = label_of(settings[group], without_epsilon);
    json seeds = json::array();
    for (const size_t run : members[group]) seeds.push_back(specs[run].seed);
    groups.push_back({{"label", label.empty() ? method : label},
                      {"settings", label_of(settings[group], keys, keys.size())},
                      {"series", series.empty() ? method : series},
                      {"runs", members[group]},
                      {"seeds", seeds},
                      {"claimed_epsilon", largest(documents, members[group], "claimed_epsilon")},
                      {"proven_epsilon", largest(documents, members[group], "proven_epsilon")},
                      {"basis", settings::word(weakest_basis(documents, members[group]))}});
  }
  json metrics = json::object();
  for (const std::string name : kMetrics) {
    Values values(members.size());
    bool any = false;
    const json::json_pointer place(fmt::format("/{}", name));
    for (size_t group = 0; group < members.size(); ++group) {
      std::set<uint64_t> counted;  // a copy of a run, or the same settings and seed again, is no further sample
      for (const size_t run : members[group]) {
        const json& summary = documents[run]["summary"];
        if (summary.is_null() || !summary.contains(place) || !summary.at(place).is_number()) continue;
        if (!counted.insert(specs[run].seed).second) continue;
        values[group].push_back(summary.at(place));
        any = true;
      }
    }
    if (any) metrics[name] = metric_json(values);
  }
  return {{"groups", groups}, {"metrics", metrics}};
}

}  // namespace sotto::report
