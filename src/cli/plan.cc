// sotto plan: what a run would do, without doing it.
#include "artifacts/privacy_section.h"
#include "base/error.h"
#include "base/files.h"
#include "base/table.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/config_options.h"
#include "cli/labelled_line.h"
#include "cli/output.h"
#include "federation/setup.h"
#include "methods/catalogue.h"
#include "methods/parts/loudness.h"
#include "privacy/guarantee.h"
#include "report/partition_picture.h"
#include "report/partition_table.h"
#include "run/partition_summary.h"

#include <ATen/ATen.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace sotto::cli {
namespace {

using nlohmann::json;

struct PlanOptions {
  run::ConfigSource config;
  OutputOptions output;
  std::string picture;
};

struct Sizes {
  int64_t shared = 0;
  int64_t personal = 0;
};

// A method that does not use [model] is asked what it broadcasts.
Sizes parameter_counts(const federation::Setup& setup) {
  if (!setup.method().uses_model) {
    return {total_elements(setup.method().make_server(setup.public_context())->open().values), 0};
  }
  RandomStream init(setup.spec().seed, "model-init");
  const auto model = models::make_model(setup.spec().model, setup.data().task, init, !setup.spec().privacy);
  return {total_elements(model->shared_parameters()), total_elements(model->personal_parameters())};
}

// Of a client that holds so many.
int64_t steps_per_round(const config::RunSpec& spec, int64_t records) {
  const int64_t declared = federation::declared_records(spec, records);
  return spec.federation.local_epochs * ((declared + spec.federation.batch - 1) / spec.federation.batch);
}

// The client with the median number of records stands for all.
int64_t median_client(const at::Tensor& records) {
  return std::get<1>(records.median(0)).item<int64_t>();
}

json release_json(const config::RunSpec& spec, const privacy::Channel& channel) {
  const privacy::Event& event = channel.terms();
  json value = {{"what", event.what},
                {"observer", event.observer},
                {"mechanism", event.mechanism},
                {"how_often", channel.how_often()},
                {"times", channel.times()},
                {"why_unproven", event.why_unproven.empty() ? json(nullptr) : json(event.why_unproven)}};
  if (event.noise_scale == 0 || !spec.privacy) return value;
  privacy::Tally tally;
  tally.add(event, channel.times());
  value.update({{"touches", event.steps},
                {"sampling_rate", event.sampling_rate},
                {"batches", event.batches},
                {"sensitivity", event.sensitivity},
                {"noise_multiplier", event.noise_scale / event.sensitivity},
                {"epsilon", tally.proven(spec.privacy->delta)}});
  for (const char* key :
       {"noise_stddev", "coordinates", "bound", "noise_per_coordinate", "noise_in_norm", "noise_over_run", "verdict"}) {
    value[key] = nullptr;
  }
  // Noise that decides a choice falls on no value that it could be compared with.
  const privacy::NoiseReach& reach = channel.reach();
  if (reach.coordinates == 0) return value;
  const methods::Loudness loudness = methods::loudness(reach);
  value.update({{"noise_stddev", reach.noise_stddev},
                {"coordinates", reach.coordinates},
                {"bound", reach.bound},
                {"noise_per_coordinate", loudness.per_coordinate},
                {"noise_in_norm", loudness.in_norm},
                {"noise_over_run", loudness.over_run},
                {"verdict", loudness.verdict}});
  return value;
}

// How many training records clients have: all of them, or the first of very many.
at::Tensor records_of_clients(const federation::Setup& setup) {
  constexpr int64_t kMostCounted = 10'000;
  std::vector<int64_t> records;
  for (int64_t client = 0; client < std::min(setup.spec().data.clients, kMostCounted); ++client) {
    records.push_back(setup.partition().shard(client).size());
  }
  return at::tensor(records, at::kLong);
}

// Clients of one budget, and the one with their median number of records, who stands for them.
struct BudgetClass {
  double budget = 0;
  std::vector<int64_t> clients;
  int64_t stands_for_all = 0;
};

constexpr size_t kMostBudgets = 8;

// By rising budget; of more than a few different ones, some evenly spaced that include the smallest and the largest.
std::vector<BudgetClass> budget_classes(const config::RunSpec& spec, const at::Tensor& records) {
  std::map<double, std::vector<int64_t>> by_budget;
  for (int64_t client = 0; client < spec.data.clients; ++client) {
    by_budget[spec.privacy->budget_of(client)].push_back(client);
  }
  const auto count = [&](int64_t client) {
    return client < records.size(0) ? records.data_ptr<int64_t>()[client] : std::numeric_limits<int64_t>::max();
  };
  std::vector<BudgetClass> all;
  for (auto& [budget, clients] : by_budget) {
    std::vector<int64_t> by_size = clients;
    std::stable_sort(by_size.begin(), by_size.end(), [&](int64_t a, int64_t b) { return count(a) < count(b); });
    all.push_back({budget, std::move(clients), by_size[(by_size.size() - 1) / 2]});
  }
  if (all.size() <= kMostBudgets) return all;
  std::vector<BudgetClass> some;
  for (size_t i = 0; i < kMostBudgets; ++i) some.push_back(all[i * (all.size() - 1) / (kMostBudgets - 1)]);
  return some;
}

// What each budget buys; empty where nothing is promised.
json budgets_json(const federation::Setup& setup, const at::Tensor& records) {
  const config::RunSpec& spec = setup.spec();
  json rows = json::array();
  if (!spec.privacy) return rows;
  for (const BudgetClass& one : budget_classes(spec, records)) {
    json releases = json::array();
    for (const auto& channel : setup.plan_for(one.stands_for_all)) releases.push_back(release_json(spec, channel));
    json names = json::array();
    for (const int64_t client : one.clients) names.push_back(spec.client_name(client));
    rows.push_back({{"budget", one.budget}, {"clients", names}, {"releases", releases}});
  }
  return rows;
}

// What a guarantee would rest on, and between which neighbours it would hold; null where nothing is promised.
json promise_json(const config::RunSpec& spec, const methods::ReleasePlan& releases) {
  const bool noised =
      spec.privacy && std::any_of(releases.begin(), releases.end(),
                                  [](const privacy::Channel& channel) { return channel.terms().noise_scale > 0; });
  json value = artifacts::basis_fields(spec, noised ? settings::word(spec.privacy->generator) : "none");
  value["adjacency"] = spec.privacy ? json(settings::word(spec.privacy->adjacency)) : json(nullptr);
  value["adjacency_means"] = spec.privacy ? json(privacy::describe(spec.privacy->neighbours())) : json(nullptr);
  return value;
}

json plan_json(const federation::Setup& setup) {
  const config::RunSpec& spec = setup.spec();
  const Sizes sizes = parameter_counts(setup);
  const at::Tensor records = records_of_clients(setup);
  const int64_t cohort = spec.federation.cohort == 0 ? spec.data.clients : spec.federation.cohort;
  const methods::ReleasePlan planned = setup.plan_for(median_client(records));
  json releases = json::array();
  for (const auto& channel : planned) releases.push_back(release_json(spec, channel));
  json plan = {
      {"dataset", spec.data.name},
      {"train_records", setup.dataset().train.size()},
      {"test_records", setup.dataset().test.size()},
      {"classes", setup.dataset().classes()},
      {"domains", setup.dataset().domain_names},
      {"clients", spec.data.clients},
      {"records_per_client", {{"min", records.min().item<int64_t>()}, {"max", records.max().item<int64_t>()}}},
      {"model", methods::trained_model_name(spec)},
      {"shared_parameters", sizes.shared},
      {"personal_parameters", sizes.personal},
      {"method", spec.method},
      {"variant", settings::word(spec.variant)},
      {"rounds", spec.rounds},
      {"cohort", cohort},
      {"steps_per_client_and_round",
       {{"min", steps_per_round(spec, records.min().item<int64_t>())},
        {"max", steps_per_round(spec, records.max().item<int64_t>())}}},
      {"upload_megabytes_per_round", releases.empty() ? 0.0 : static_cast<double>(cohort * sizes.shared) * 4 / 1e6},
      {"releases", releases},
      {"budgets", budgets_json(setup, records)},
      {"config_hash", spec.hash()}};
  plan.update(promise_json(spec, planned));
  return plan;
}

std::string range(const json& value) {
  return value["min"] == value["max"] ? value["min"].dump()
                                      : fmt::format("{} to {}", value["min"].dump(), value["max"].dump());
}

// One name, or how many.
std::string clients_text(const json& names) {
  return names.size() == 1 ? names[0].get<std::string>() : std::to_string(names.size());
}

std::string noise_text(const json& budgets) {
  Table table({"budget ε", "clients", "release", "multiplier", "stddev", "spent ε", "noise", ""});
  const auto number = [](const json& value) {
    if (value.is_null()) return std::string("–");
    return std::isfinite(value.get<double>()) ? fmt::format("{:.4g}", value.get<double>()) : std::string("∞");
  };
  bool any = false;
  for (const json& row : budgets) {
    for (const json& release : row["releases"]) {
      if (!release.contains("verdict")) continue;
      any = true;
      table.add_row({number(row["budget"]), clients_text(row["clients"]), release["what"],
                     number(release["noise_multiplier"]), number(release["noise_stddev"]), number(release["epsilon"]),
                     number(release["noise_over_run"]), release["verdict"].is_null() ? "" : release["verdict"]});
    }
  }
  if (!any) return "";
  return fmt::format("\n{}", table.to_string(kLine)) +
         "noise: its norm over the run / the most that all releases could add up to.\n"
         "At best; learning needs it well below 1. --json has sampling, sensitivity, more.\n";
}

std::string plan_text(const json& plan, const report::PartitionSummary& partition) {
  std::string text = labelled_line(
      "data", fmt::format("{}: {} training records, {} test records, {} classes", plan["dataset"].get<std::string>(),
                          plan["train_records"].dump(), plan["test_records"].dump(), plan["classes"].dump()));
  text += fmt::format(
      "clients     {}, {} a round, {} records each\n"
      "model       {}: {} shared and {} personal parameters\n"
      "method      {} ({})\n"
      "work        {} rounds of {} steps per client; {:.2f} MB of uploads a round\n",
      plan["clients"].dump(), plan["cohort"].dump(), range(plan["records_per_client"]),
      plan["model"].get<std::string>(), plan["shared_parameters"].dump(), plan["personal_parameters"].dump(),
      plan["method"].get<std::string>(), plan["variant"].get<std::string>(), plan["rounds"].dump(),
      range(plan["steps_per_client_and_round"]), plan["upload_megabytes_per_round"].get<double>());
  if (!plan["adjacency"].is_null()) {
    text += labelled_line("adjacency", fmt::format("{}: {}", plan["adjacency"].get<std::string>(),
                                                   plan["adjacency_means"].get<std::string>()));
  }
  const auto basis = plan["basis"].get<std::string>();
  if (!plan["basis_why"].is_null()) {
    text += labelled_line("basis", fmt::format("{}: {}", basis, plan["basis_why"].get<std::string>()));
  }
  text += fmt::format("\n{}\n", report::partition_table(partition));
  if (plan["releases"].empty()) return text + "releases    none: nothing leaves the clients\n";
  Table table({"release", "seen by", "mechanism", "how often", "guarantee"});
  for (const json& release : plan["releases"]) {
    const json& why = release["why_unproven"];
    table.add_row({release["what"], release["observer"], release["mechanism"], release["how_often"],
                   why.is_null() ? basis : "none: " + why.get<std::string>()});
  }
  text += table.to_string(kLine);
  return text + noise_text(plan["budgets"]);
}

void plan(const PlanOptions& options) {
  if (!options.picture.empty() && fs::path(options.picture).extension() != ".png") {
    fail_user("--picture {}: the picture is a file NAME.png", options.picture);
  }
  const federation::Setup setup(run::load_spec(options.config));
  const report::PartitionSummary partition = run::summarise_partition(setup);
  if (!options.picture.empty()) report::write_partition_picture(options.picture, partition);
  const json value = plan_json(setup);
  if (options.output.json) {
    print_json(value);
  } else {
    print_text(plan_text(value, partition));
  }
}

}  // namespace

void add_plan(Command& program) {
  auto options = std::make_shared<PlanOptions>();
  Command command = program.subcommand("plan", "Print what a run would do, without doing it");
  add_config_options(command, options->config);
  command.option("--picture", options->picture, "Also draw the partition into this PNG file");
  add_output_options(command, options->output, "Print the plan as JSON");
  add_example(command, "sotto plan examples/1_first_federation.toml --picture partition.png");
  command.callback([options] { plan(*options); });
}

}  // namespace sotto::cli
