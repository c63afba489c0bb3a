#include "config/load.h"

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "methods/catalogue.h"
#include "settings/toml.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <mutex>

namespace sotto::config {
namespace {

using settings::Section;

constexpr double kMostRounds = 1 << 23;

RecordOptions read_record(Section section) {
  RecordOptions o;
  o.uploads = section.boolean("uploads", o.uploads);
  o.checkpoint_every = section.integer("checkpoint_every", o.checkpoint_every, settings::at_least(1));
  o.keep_states = section.choice("keep_states", o.keep_states);
  section.finish();
  return o;
}

std::string read_method_name(Section& method, const std::string& fallback) {
  const nlohmann::json written = method.any("name");
  const std::string name = written.is_string() ? written.get<std::string>() : "";
  const std::string now = methods::current_name(name);
  if (now == name) return method.one_of("name", fallback, methods::method_names());
  static std::once_flag said;  // a sweep reads its config once for every run
  std::call_once(said, [&] { info("method.name: '{}' is called '{}' now", name, now); });
  method.resolve("name", now);
  return now;
}

// Name and variant are read and written apart from the method's own options.
void read_method(Section method, methods::RunSettings& run) {
  run.method = read_method_name(method, run.method);
  run.variant = method.choice("variant", run.variant);
  const methods::MethodEntry& entry = methods::find_method(run.method);
  if (!entry.has(run.variant)) {
    method.fail("variant", fmt::format("is \"paper\": '{}' has no paper variant, for no paper prints its formula; set "
                                       "variant = \"sound\"",
                                       run.method));
  }
  if (run.model.personal.empty()) run.model.personal = entry.personal_parameters;
  run.options = entry.read_options(method);
  method.finish();
  nlohmann::json options = method.resolved();
  options.erase("name");
  options.erase("variant");
  run.method_options = options.dump();
}

// [[clients]]: a name each, and budgets of their own if [privacy] is stated. Budgets become those of [privacy], so that
// what is resolved says them once.
void read_clients(Section& root, RunSpec& spec) {
  std::vector<Section> tables = root.children("clients");
  if (tables.empty()) return;
  if (static_cast<int64_t>(tables.size()) != spec.data.clients) {
    root.fail("clients", fmt::format("are {}, and data.clients says {}; write one [[clients]] for each", tables.size(),
                                     spec.data.clients));
  }
  std::vector<double> budgets;
  for (Section& table : tables) {
    const std::string name = table.text("name", "");
    if (name.empty()) table.fail("name", "is missing: every client needs one");
    if (std::find(spec.client_names.begin(), spec.client_names.end(), name) != spec.client_names.end()) {
      table.fail("name", fmt::format("'{}' is another client's name already", name));
    }
    spec.client_names.push_back(name);
    table.ignore("budget");
    if (table.has("budget")) budgets.push_back(table.number("budget", 0, privacy::kPromised));
    table.finish();
  }
  if (budgets.empty()) return;
  if (!spec.privacy) root.fail("clients", "have budgets, and there is no [privacy] that says of what");
  if (!spec.privacy->budgets.empty()) root.fail("clients", "have budgets, and so has privacy.budgets: give them once");
  if (budgets.size() != tables.size()) {
    root.fail("clients", fmt::format("have {} budgets for {} clients: give one to each, or to none", budgets.size(),
                                     tables.size()));
  }
  spec.privacy->budgets = std::move(budgets);
}

void read_most_rounds(Section& root, RunSpec& spec) {
  spec.most_rounds = root.integer("most_rounds", spec.most_rounds, settings::between(0, kMostRounds));
  if (spec.most_rounds == 0) return;
  if (!spec.privacy) {
    root.fail("most_rounds", "is for runs with [privacy], whose noise depends on it; without, a run can be extended");
  }
  if (spec.most_rounds < spec.rounds) {
    root.fail("most_rounds",
              fmt::format("is {}, fewer than the {} rounds there are: the noise was calibrated for no more",
                          spec.most_rounds, spec.rounds));
  }
}

RunSpec read_spec(Section root) {
  RunSpec spec;
  spec.name = root.text("name", spec.name);
  spec.seed = static_cast<uint64_t>(root.integer("seed", static_cast<int64_t>(spec.seed), settings::at_least(0)));
  spec.rounds = root.integer("rounds", spec.rounds, settings::between(1, kMostRounds));
  spec.data = data::read_data_options(root.child("data"));
  spec.model = models::read_model_options(root.child("model"));
  spec.federation = methods::read_federation_options(root.child("federation"), spec.data.clients);
  read_method(root.child("method"), spec);
  if (root.has("privacy")) spec.privacy = privacy::read_privacy_terms(root.child("privacy"), spec.seed);
  root.ignore("privacy");
  read_clients(root, spec);
  read_most_rounds(root, spec);
  spec.record = read_record(root.child("record"));
  for (const char* table : {kFitTable, kSweepTable, kDeclaredTable, kServeTable}) root.ignore(table);
  root.finish();
  return spec;
}

Section document(const std::string& text, const std::string& name, const std::vector<std::string>& overrides) {
  settings::ParsedToml parsed = settings::parse_toml(text, name);
  for (const std::string& assignment : overrides) settings::apply_override(parsed, assignment);
  return Section(std::move(parsed.value), "", parsed.source);
}

}  // namespace

RunSpec parse_run_spec(const std::string& text, const std::string& name, const std::vector<std::string>& overrides) {
  return read_spec(document(text, name, overrides));
}

RunSpec load_run_spec(const std::filesystem::path& file, const std::vector<std::string>& overrides) {
  return parse_run_spec(read_file(file), file.string(), overrides);
}

std::optional<Section> load_table(const std::filesystem::path& file, const std::vector<std::string>& overrides,
                                  const std::string& table) {
  Section root = document(read_file(file), file.string(), overrides);
  if (!root.has(table)) return std::nullopt;
  return root.child(table);
}

RunSpec with_method(const RunSpec& spec, const std::string& method, methods::Variant variant,
                    const nlohmann::json& options) {
  RunSpec changed = spec;
  nlohmann::json table = options;
  table["name"] = method;
  table["variant"] = settings::word(variant);
  read_method(Section(std::move(table), "method",
                      std::make_shared<settings::Source>(settings::Source{.file = "the resolved config", .line = {}})),
              changed);
  return changed;
}

}  // namespace sotto::config
