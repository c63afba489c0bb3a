#include "config/load.h"

#include "base/error.h"
#include "base/files.h"
#include "config/toml.h"

namespace sotto::config {
namespace {

DataOptions read_data(Section section) {
  DataOptions o;
  o.name = section.text("name", o.name);
  o.otherwise = section.texts("otherwise", o.otherwise);
  o.path = section.text("path", o.path);
  o.features = section.text("features", o.features);
  o.domains = section.texts("domains", o.domains);
  o.image_size = section.integer("image_size", o.image_size, between(0, 1024));
  o.limit = section.integer("limit", o.limit, at_least(0));
  o.test_limit = section.integer("test_limit", o.test_limit, at_least(0));
  o.clients = section.integer("clients", o.clients, between(1, 1e9));
  o.partition = section.text("partition", o.partition);
  o.alpha = section.number("alpha", o.alpha, kPositive);
  o.classes_per_client = section.integer("classes_per_client", o.classes_per_client, at_least(1));
  o.records_per_client = section.integer("records_per_client", o.records_per_client, at_least(1));
  o.private_label = section.integer("private_label", o.private_label, at_least(0));
  o.train_fraction = section.number("train_fraction", o.train_fraction, {.low = 0, .high = 1, .low_excluded = true});
  o.test_fraction = section.number("test_fraction", o.test_fraction, {.low = 0, .high = 1, .high_excluded = true});
  o.min_records = section.integer("min_records", o.min_records, at_least(1));
  section.finish();
  return o;
}

ModelOptions read_model(Section section) {
  ModelOptions o;
  o.name = section.text("name", o.name);
  o.weights = section.text("weights", o.weights);
  o.norm = section.one_of("norm", o.norm, {"group", "batch"});
  o.hidden = section.integers("hidden", o.hidden, at_least(1));
  o.width = section.integer("width", o.width, at_least(0));
  o.depth = section.integer("depth", o.depth, at_least(0));
  o.heads = section.integer("heads", o.heads, at_least(0));
  o.patch = section.integer("patch", o.patch, at_least(1));
  o.adapter = section.integer("adapter", o.adapter, at_least(0));
  o.dropout = section.number("dropout", o.dropout, {.low = 0, .high = 1, .high_excluded = true});
  o.freeze_backbone = section.boolean("freeze_backbone", o.freeze_backbone);
  o.personal = section.texts("personal", o.personal);
  section.finish();
  return o;
}

FederationOptions read_federation(Section section, int64_t clients) {
  FederationOptions o;
  o.cohort = section.integer("cohort", o.cohort, at_least(0));
  o.sampling = section.one_of("sampling", o.sampling, {"fixed", "poisson"});
  o.local_epochs = section.integer("local_epochs", o.local_epochs, at_least(1));
  o.batch = section.integer("batch", o.batch, at_least(1));
  o.lr = section.number("lr", o.lr, kPositive);
  o.optimizer = section.one_of("optimizer", o.optimizer, {"sgd", "adam", "adamw"});
  o.momentum = section.number("momentum", o.momentum, {.low = 0, .high = 1, .high_excluded = true});
  o.weight_decay = section.number("weight_decay", o.weight_decay, kNonNegative);
  o.eval_every = section.integer("eval_every", o.eval_every, at_least(1));
  o.eval_clients = section.integer("eval_clients", o.eval_clients, at_least(0));
  o.state = section.one_of("state", o.state, {"memory", "disk"});
  if (o.cohort > clients) {
    section.fail("cohort",
                 fmt::format("is {}, more than the {} clients; lower it, or raise data.clients", o.cohort, clients));
  }
  section.finish();
  return o;
}

PrivacyOptions read_privacy(Section section, uint64_t seed) {
  PrivacyOptions o;
  o.epsilon = section.required_number("epsilon", kPositive, "1.0");
  o.delta =
      section.required_number("delta", {.low = 0, .high = 1, .low_excluded = true, .high_excluded = true}, "1e-5");
  o.adjacency = section.required_one_of("adjacency", {"add-remove", "replace", "replace-same-label"});
  o.unit = section.one_of("unit", o.unit, {"record", "client"});
  o.observer = section.one_of("observer", o.observer, {"server", "clients", "public"});
  o.noise = section.one_of("noise", o.noise, {"replay", "secure"});
  o.budgets = section.numbers("budgets", o.budgets, kPositive);
  o.budget_shares = section.numbers("budget_shares", o.budget_shares, kPositive);
  if (!o.budget_shares.empty() && o.budget_shares.size() != o.budgets.size()) {
    section.fail("budget_shares", fmt::format("has {} numbers for {} budgets; give one share per budget",
                                              o.budget_shares.size(), o.budgets.size()));
  }
  const auto fallback = static_cast<int64_t>(o.budget_shares.empty() ? 0 : seed);
  o.budget_seed = static_cast<uint64_t>(section.integer("budget_seed", fallback, at_least(0)));
  section.finish();
  return o;
}

FitOptions read_fit(Section section) {
  FitOptions o;
  o.proxy = section.text("proxy", o.proxy);
  o.limit = section.integer("limit", o.limit, at_least(0));
  o.clients = section.integer("clients", o.clients, at_least(0));
  o.rounds = section.integer("rounds", o.rounds, at_least(0));
  o.budgets = section.numbers("budgets", o.budgets, kPositive);
  o.bounds = section.numbers("bounds", o.bounds, kPositive);
  o.repeats = section.integer("repeats", o.repeats, at_least(1));
  o.axis = section.one_of("axis", o.axis, {"epsilon", "noise"});
  o.outliers = section.boolean("outliers", o.outliers);
  o.monotone = section.boolean("monotone", o.monotone);
  section.finish();
  return o;
}

SweepOptions read_sweep(Section section) {
  SweepOptions o;
  for (Section& table : section.children("rows")) {
    SweepRow row;
    row.name = table.text("name", row.name);
    row.set = table.texts("set", row.set);
    if (row.name.empty()) table.fail("name", "is missing; say what the row is called");
    table.finish();
    o.rows.push_back(std::move(row));
  }
  o.grid = section.texts("grid", o.grid);
  o.seeds = section.integer("seeds", o.seeds, at_least(1));
  o.against = section.text("against", o.against);
  o.metric = section.text("metric", o.metric);
  o.quick = section.texts("quick", o.quick);
  o.quick_grid = section.texts("quick_grid", o.quick_grid);
  section.finish();
  return o;
}

RecordOptions read_record(Section section) {
  RecordOptions o;
  o.uploads = section.boolean("uploads", o.uploads);
  o.checkpoint_every = section.integer("checkpoint_every", o.checkpoint_every, at_least(1));
  section.finish();
  return o;
}

RunSpec read_spec(Section root, const MethodReader& methods) {
  RunSpec spec;
  spec.name = root.text("name", spec.name);
  spec.seed = static_cast<uint64_t>(root.integer("seed", static_cast<int64_t>(spec.seed), at_least(0)));
  spec.rounds = root.integer("rounds", spec.rounds, between(1, 1 << 23));
  spec.data = read_data(root.child("data"));
  spec.model = read_model(root.child("model"));
  spec.federation = read_federation(root.child("federation"), spec.data.clients);
  Section method = root.child("method");
  spec.method = method.one_of("name", spec.method, methods.names);
  spec.variant = method.one_of("variant", spec.variant, {"sound", "paper"});
  methods.read_options(spec.method, method);
  method.finish();
  nlohmann::json options = method.resolved();
  options.erase("name");
  options.erase("variant");
  spec.method_options = options.dump();
  if (root.has("privacy")) spec.privacy = read_privacy(root.child("privacy"), spec.seed);
  spec.record = read_record(root.child("record"));
  if (root.has("fit")) spec.fit = read_fit(root.child("fit"));
  if (root.has("sweep")) spec.sweep = read_sweep(root.child("sweep"));
  root.finish();
  return spec;
}

}  // namespace

RunSpec parse_run_spec(const std::string& text, const std::string& name, const std::vector<std::string>& overrides,
                       const MethodReader& methods) {
  ParsedToml parsed = parse_toml(text, name);
  for (const std::string& assignment : overrides) apply_override(parsed, assignment);
  return read_spec(Section(std::move(parsed.value), "", parsed.source), methods);
}

RunSpec load_run_spec(const std::filesystem::path& file, const std::vector<std::string>& overrides,
                      const MethodReader& methods) {
  return parse_run_spec(read_file(file), file.string(), overrides, methods);
}

}  // namespace sotto::config
