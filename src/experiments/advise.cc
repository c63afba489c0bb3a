#include "experiments/advise.h"

#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/statistics.h"
#include "config/load.h"
#include "data/custom.h"
#include "data/origin.h"
#include "data/source.h"
#include "experiments/jobs.h"
#include "methods/catalogue.h"
#include "report/advice_picture.h"
#include "settings/toml.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace sotto::experiments {
namespace {

using nlohmann::json;

constexpr size_t kFinalists = 2;
constexpr uint64_t kSeeds = 3;
// Where joining is worth it, down to where would it be? Where it is not, from where on?
constexpr double kSmallerBudgets[] = {1.0 / 16, 1.0 / 4};
constexpr double kLargerBudgets[] = {4.0, 16.0};
constexpr double kFewer = 1.0 / 4;
constexpr double kMore = 4.0;
constexpr double kUnheard = 1e-6;  // the least budget there is
constexpr int64_t kLeastToQuarter = 8;
// Partitions that any labelled data can be dealt by.
const std::set<std::string> kAnyData = {"iid", "dirichlet", "pathological", "quantity"};

// What a simulation is made of besides its recipe.
struct Condition {
  double epsilon_factor = 1;
  double clients_factor = 1;
  double records_factor = 1;
  bool operator==(const Condition&) const = default;
};

int64_t scaled(int64_t count, double factor) {
  return std::max<int64_t>(1, std::llround(static_cast<double>(count) * factor));
}

class Adviser {
 public:
  explicit Adviser(const AdviceRequest& request) : request_(request) {
    advice_.spec = run::load_spec(request.config);
    const config::RunSpec& spec = advice_.spec;
    if (!spec.privacy) {
      fail_user("{}: there is no table [privacy]: without a promise there is no noise to weigh", request.config.config);
    }
    proxy_.name = fs::exists(request.proxy) ? "custom" : request.proxy;
    proxy_.path = fs::exists(request.proxy) ? request.proxy : "";
    if (!proxy_.path.empty() && data::may_be_table(proxy_.path)) proxy_.schema = spec.data.schema;
    // By name and path alone: the clients' records stay closed.
    const bool known = spec.data.name != "custom" || !spec.data.path.empty();
    if (known && data::common_part(data::named_origin(proxy_), data::named_origin(spec.data))) {
      fail_user(
          "--proxy {} is the clients' own dataset: what is learnt from it is not accounted for; name another, public "
          "one",
          request.proxy);
    }
    proxy_.image_size = spec.data.image_size;
    const data::Dataset dataset = data::load_dataset(proxy_, 0);
    kind_ = dataset.kind;
    proxy_records_ = dataset.train.size();
    advice_.proxy = {{"name", request.proxy}, {"records", proxy_records_}, {"classes", dataset.classes()}};
    settle_partition();
    settle_records();
  }

  Advice run() {
    std::vector<RecipeResult> results;
    for (Recipe& recipe : candidate_recipes(advice_.spec, kind_)) results.push_back({.recipe = std::move(recipe)});
    simulate("candidates", results, {}, 1);
    rank(results);
    try_better_features(results);
    std::vector<RecipeResult> finalists = best_of(results, false, kFinalists), alone = best_of(results, true, 1);
    if (finalists.empty() || alone.empty()) {
      fail_user("nothing could be simulated on {}: {}", request_.proxy, first_failure(results));
    }
    finalists.push_back(alone.front());
    simulate("finalists", finalists, {}, kSeeds);
    for (const RecipeResult& final : finalists) put(final, results);
    rank(results);
    advice_.best = best_of(results, false, 1).front();
    advice_.alone = advice_.stay = best_of(results, true, 1).front();
    if (keeps_a_model(advice_.best.recipe)) {
      std::vector<RecipeResult> twin = {{.recipe = unheard(advice_.best.recipe)}};
      simulate("unheard", twin, {}, kSeeds);
      if (twin.front().simulated() && twin.front().mean() > advice_.alone.mean()) advice_.alone = twin.front();
      put(twin.front(), results);
      rank(results);
    }
    advice_.table = std::move(results);
    advice_.worth_joining = gain() > 2 * gain_error();
    look_around();
    return std::move(advice_);
  }

 private:
  void settle_partition() {
    data::DataOptions& wanted = advice_.spec.data;
    partition_ = data::to_json(wanted);
    if (kAnyData.contains(wanted.partition)) return;
    const bool resampled = wanted.partition == "resample";
    partition_ = data::to_json(data::DataOptions{});
    if (!resampled) {
      advice_.notes.push_back(fmt::format("data.partition '{}' cannot be had from {}: labels are dealt evenly instead",
                                          wanted.partition, request_.proxy));
    }
  }

  void settle_records() {
    const config::RunSpec& spec = advice_.spec;
    const int64_t affordable = proxy_records_ / spec.data.clients;
    int64_t wanted = request_.records;
    if (wanted == 0 && spec.privacy->records > 0) wanted = spec.privacy->records;
    if (wanted == 0 && spec.data.partition == "resample") wanted = spec.data.records_per_client;
    if (wanted == 0) wanted = declared_records();
    if (wanted == 0 && spec.data.limit > 0)
      wanted = scaled(spec.data.limit, 1.0 / static_cast<double>(spec.data.clients));
    if (wanted == 0) {
      wanted = affordable;
      advice_.notes.push_back(
          fmt::format("how many records a client has is not declared: {} are simulated, as {} has for each; --records "
                      "says otherwise",
                      wanted, request_.proxy));
    } else {
      wanted = scaled(wanted, spec.data.train_fraction);
    }
    if (affordable < 2)
      fail_user("--proxy {} has {} records for {} clients", request_.proxy, proxy_records_, spec.data.clients);
    if (wanted > affordable) {
      advice_.notes.push_back(
          fmt::format("{} has {} records for each client, not {}: more would be better than is shown", request_.proxy,
                      affordable, wanted));
      wanted = affordable;
    }
    advice_.records = wanted;
  }

  int64_t declared_records() const {
    auto declared = run::load_table(request_.config, config::kDeclaredTable);
    if (!declared || !declared->has("records")) return 0;
    return std::llround(declared->number("records", 0));
  }

  config::RunSpec simulation(const Recipe& recipe, const Condition& condition, uint64_t seed) const {
    const int64_t clients = scaled(advice_.spec.data.clients, condition.clients_factor);
    json settings = with_recipe(advice_.spec, recipe);
    json data = partition_;
    for (const char* key : {"schema", "otherwise", "domains", "limit", "test_limit", "project_on", "project"})
      data.erase(key);
    data["name"] = proxy_.name;
    data["path"] = proxy_.path;
    data["features"] = recipe.features();
    if (settings["data"].contains("project_on")) {
      data["project_on"] = settings["data"]["project_on"];
      data["project"] = settings["data"]["project"];
    }
    data["clients"] = clients;
    data["train_fraction"] = std::min(1.0, static_cast<double>(scaled(advice_.records, condition.records_factor)) *
                                               static_cast<double>(clients) / static_cast<double>(proxy_records_));
    data["test_fraction"] = advice_.spec.data.test_fraction;
    settings["data"] = std::move(data);
    if (proxy_.schema != data::SchemaChoice()) settings["data"]["schema"] = advice_.spec.to_json()["data"]["schema"];
    if (settings["federation"]["cohort"].get<int64_t>() > 0) {
      settings["federation"]["cohort"] =
          std::min(clients, scaled(settings["federation"]["cohort"].get<int64_t>(), condition.clients_factor));
    }
    json& evaluated = settings["federation"]["eval_clients"];
    evaluated = std::min(clients, evaluated.get<int64_t>());
    json& privacy = settings["privacy"];
    const auto scaled_budget = [&](const json& budget) {
      return recipe.unheard ? kUnheard : budget.get<double>() * condition.epsilon_factor;
    };
    privacy["epsilon"] = scaled_budget(privacy["epsilon"]);
    for (json& budget : privacy["budgets"]) budget = scaled_budget(budget);
    if (privacy.contains("records") && advice_.spec.privacy->records > 0) {
      privacy["records"] = scaled(advice_.records, condition.records_factor);
    }
    privacy["noise"] = "replay";
    settings["record"] = json::object();
    settings["name"] = recipe.name();
    settings["seed"] = seed;
    settings.erase("clients");
    return config::parse_run_spec(settings::format_toml(settings), recipe.name(), {});
  }

  // Fills in the accuracies of the first `seeds` seeds. Runs of the same features go together: they share their data.
  void simulate(const std::string& title, std::vector<RecipeResult>& results, const Condition& condition,
                uint64_t seeds) const {
    std::map<std::string, std::vector<Job>> by_features;
    for (size_t i = 0; i < results.size(); ++i) {
      RecipeResult& result = results[i];
      result.seeds.clear();
      result.accuracies.clear();
      for (uint64_t seed = 0; seed < seeds; ++seed) {
        try {
          by_features[result.recipe.features()].push_back(
              make_job(i, simulation(result.recipe, condition, advice_.spec.seed + seed), request_.folder / "runs"));
        } catch (const UserError& error) {
          result.failure = error.what();
        }
      }
    }
    for (auto& [features, jobs] : by_features) {
      run_jobs(jobs, {.title = features.empty() ? title : fmt::format("{} on {}", title, features),
                      .threads = request_.threads,
                      .status = [](const Job& job) {
                        return fmt::format("{} {:.1f} %", job.spec.name, 100 * accuracy(job));
                      }});
      if (interrupted()) throw Interrupted("stopped; the same command continues");
      for (const Job& job : jobs) {
        RecipeResult& result = results[job.cell];
        if (!job.failure.empty()) result.failure = job.failure;
        if (!job.summary || !std::isfinite(accuracy(job))) continue;
        result.seeds.push_back(job.spec.seed);
        result.accuracies.push_back(accuracy(job));
      }
    }
  }

  static double accuracy(const Job& job) {
    return job.summary->evaluation.over(&federation::ClientScore::accuracy).mean;
  }

  // Candidates are tried on quick features; the best of them may do better on good ones.
  void try_better_features(std::vector<RecipeResult>& results) const {
    const std::string best = feature_sets(advice_.spec, kind_).back();
    const std::vector<RecipeResult> first = best_of(results, false, 1);
    if (first.empty() || first.front().recipe.features().empty()) return;
    std::vector<RecipeResult> moved = {{.recipe = on_features(first.front().recipe, best)}};
    if (std::any_of(results.begin(), results.end(), [&](const auto& r) { return r.recipe == moved.front().recipe; }))
      return;
    simulate("better features", moved, {}, 1);
    put(moved.front(), results);
    rank(results);
  }

  // In place of what is known of its recipe.
  static void put(const RecipeResult& result, std::vector<RecipeResult>& results) {
    std::erase_if(results, [&](const RecipeResult& known) { return known.recipe == result.recipe; });
    results.push_back(result);
  }

  // Whether clients end up with models that they would have without anybody else.
  bool keeps_a_model(const Recipe& recipe) const {
    const config::RunSpec spec = simulation(recipe, {}, advice_.spec.seed);
    return methods::find_method(spec.method).fits_without_noise(spec);
  }

  static void rank(std::vector<RecipeResult>& results) {
    std::stable_sort(results.begin(), results.end(), [](const RecipeResult& a, const RecipeResult& b) {
      return a.simulated() && (!b.simulated() || a.mean() > b.mean());
    });
  }

  // Of ranked results. Those of more seeds first: one seed alone is luck.
  static std::vector<RecipeResult> best_of(const std::vector<RecipeResult>& results, bool alone, size_t most) {
    std::vector<RecipeResult> best;
    for (const RecipeResult& result : results) {
      const bool wanted = result.recipe.alone == alone && !result.recipe.unheard;
      if (result.simulated() && wanted) best.push_back(result);
    }
    std::stable_sort(best.begin(), best.end(),
                     [](const auto& a, const auto& b) { return a.seeds.size() > b.seeds.size(); });
    if (best.size() > most) best.resize(most);
    return best;
  }

  static std::string first_failure(const std::vector<RecipeResult>& results) {
    for (const RecipeResult& result : results) {
      if (!result.failure.empty()) return result.failure;
    }
    return "no candidate protects what the config promises";
  }

  std::vector<double> gains() const {
    std::vector<double> gains;
    for (size_t i = 0; i < std::min(advice_.best.accuracies.size(), advice_.alone.accuracies.size()); ++i) {
      gains.push_back(advice_.best.accuracies[i] - advice_.alone.accuracies[i]);
    }
    return gains;
  }

  double gain() const { return mean(gains()); }
  double gain_error() const { return sample_std(gains()) / std::sqrt(static_cast<double>(gains().size())); }

  double at(const RecipeResult& result, const Condition& condition, const std::string& title) const {
    std::vector<RecipeResult> one = {{.recipe = result.recipe}};
    simulate(title, one, condition, 1);
    return one.front().simulated() ? one.front().mean() : std::nan("");
  }

  // One condition at a time: at how small a budget, how few clients, how few records would it still be worth it?
  void look_around() {
    const config::RunSpec& spec = advice_.spec;
    const double joined = advice_.best.accuracies.front(), alone = advice_.alone.accuracies.front();
    const double epsilon = spec.privacy->epsilon;
    const auto add = [&](const char* key, double value, double with, double without) {
      if (std::isfinite(with) && std::isfinite(without)) advice_.what_if.push_back({key, value, with, without});
    };
    for (const double factor : advice_.worth_joining ? kSmallerBudgets : kLargerBudgets) {
      add("epsilon", factor * epsilon, at(advice_.best, {.epsilon_factor = factor}, "other budgets"), alone);
    }
    add("epsilon", epsilon, joined, alone);
    const double factor = advice_.worth_joining ? kFewer : kMore;
    const auto compare = [&](const char* key, int64_t count, const Condition& other) {
      const std::string title = fmt::format("other {}", key);
      const bool possible = advice_.worth_joining
                                ? count >= kLeastToQuarter
                                : proxy_records_ >= scaled(advice_.records * spec.data.clients, kMore);
      if (possible) {
        add(key, static_cast<double>(scaled(count, factor)), at(advice_.best, other, title),
            at(advice_.alone, other, title));
      }
      add(key, static_cast<double>(count), joined, alone);
    };
    compare("clients", spec.data.clients, {.clients_factor = factor});
    compare("records", advice_.records, {.records_factor = factor});
    std::sort(advice_.what_if.begin(), advice_.what_if.end(),
              [](const WhatIf& a, const WhatIf& b) { return std::tie(a.key, a.value) < std::tie(b.key, b.value); });
  }

  const AdviceRequest& request_;
  Advice advice_;
  data::DataOptions proxy_;
  data::Kind kind_ = data::Kind::kImages;
  int64_t proxy_records_ = 0;
  json partition_;
};

report::AdviceSummary picture_of(const Advice& advice) {
  report::AdviceSummary summary;
  summary.title = advice.worth_joining ? fmt::format("Join: {}", advice.best.recipe.name()) : "Stay alone";
  summary.subtitle = fmt::format("{} clients of {} records, ε = {:g}; simulated on {}", advice.spec.data.clients,
                                 advice.records, advice.spec.privacy->epsilon, advice.proxy["name"].get<std::string>());
  summary.alone = advice.alone.mean();
  for (const RecipeResult& result : advice.table) {
    if (!result.simulated()) continue;
    summary.bars.push_back({.name = result.recipe.name(),
                            .value = result.mean(),
                            .spread = result.std(),
                            .chosen = result.recipe == advice.recommended().recipe,
                            .alone = result.recipe.alone});
  }
  return summary;
}

json optional_number(const std::optional<double>& value) {
  return value ? json(*value) : json(nullptr);
}

}  // namespace

double RecipeResult::mean() const {
  return sotto::mean(accuracies);
}

double RecipeResult::std() const {
  return sample_std(accuracies);
}

std::optional<double> Advice::worth_from(const std::string& key) const {
  std::optional<double> from;
  for (const WhatIf& point : what_if) {
    if (point.key != key) continue;
    if (point.joined <= point.alone) {
      from.reset();
    } else if (!from) {
      from = point.value;
    }
  }
  return from;
}

std::string Advice::config() const {
  return config::parse_run_spec(settings::format_toml(with_recipe(spec, recommended().recipe)), "advice", {}).to_toml();
}

Advice advise(const AdviceRequest& request) {
  Advice advice = Adviser(request).run();
  make_folder(request.folder);
  write_file_atomically(request.folder / "advice.json", to_json(advice).dump(2) + "\n");
  report::write_advice_picture(request.folder / "advice.png", picture_of(advice));
  return advice;
}

nlohmann::ordered_json to_json(const Advice& advice) {
  nlohmann::ordered_json value;
  value["recommended"] = advice.recommended().recipe.name();
  value["settings"] = advice.recommended().recipe.settings;
  value["expected_accuracy"] = advice.recommended().mean();
  value["expected_std"] = advice.recommended().std();
  value["alone_accuracy"] = advice.alone.mean();
  value["worth_joining"] = advice.worth_joining;
  value["worth_from"] = {{"epsilon", optional_number(advice.worth_from("epsilon"))},
                         {"clients", optional_number(advice.worth_from("clients"))},
                         {"records", optional_number(advice.worth_from("records"))}};
  value["clients"] = advice.spec.data.clients;
  value["records"] = advice.records;
  value["epsilon"] = advice.spec.privacy->epsilon;
  value["proxy"] = advice.proxy;
  value["notes"] = advice.notes;
  value["table"] = nlohmann::ordered_json::array();
  for (const RecipeResult& result : advice.table) {
    nlohmann::ordered_json row = {{"name", result.recipe.name()},       {"alone", result.recipe.alone},
                                  {"settings", result.recipe.settings}, {"seeds", result.seeds},
                                  {"accuracies", result.accuracies},    {"failure", result.failure}};
    row["accuracy"] = result.simulated() ? json(result.mean()) : json(nullptr);
    row["std"] = result.simulated() ? json(result.std()) : json(nullptr);
    value["table"].push_back(std::move(row));
  }
  value["what_if"] = nlohmann::ordered_json::array();
  for (const WhatIf& point : advice.what_if) {
    value["what_if"].push_back(
        {{"key", point.key}, {"value", point.value}, {"joined", point.joined}, {"alone", point.alone}});
  }
  return value;
}

}  // namespace sotto::experiments
