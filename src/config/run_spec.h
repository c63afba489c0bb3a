// What a run is: every setting, resolved and validated, immutable from here on.
//
// A RunSpec is made once from a TOML file (see load.h). Its hash stamps runs, checkpoints and uploads, so that mixed
// settings are caught. Each field's comment says what it means; defaults are the initialisers.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sotto::config {

// [data]
struct DataOptions {
  std::string name = "fashion-mnist";  // a dataset or domain family known to `sotto data list`, or "custom" with `path`
  std::vector<std::string> otherwise;  // the first of these that is installed takes its place if `name` is not
  std::string path;                    // the user's own data: a folder or file in one of the supported formats
  std::string features;                // "" = raw records; otherwise the cached features of this frozen backbone
  std::vector<std::string>
      domains;                     // domains to use, in order; empty = all of them. For a single-domain image dataset:
                                   // transforms (plain, inverted, rotated, edges, blurred, …) that make domains of it
  int64_t image_size = 0;          // resize images to this many pixels a side; 0 = the dataset's own size
  int64_t limit = 0;               // use at most this many training records (a seeded sample); 0 = all
  int64_t test_limit = 0;          // the same of the test split
  int64_t clients = 20;            // number of clients
  std::string partition = "iid";   // iid, dirichlet, pathological, domain, quantity, resample,
                                   // private-label, distribution-1, distribution-2
  double alpha = 0.5;              // Dirichlet concentration (dirichlet, quantity)
  int64_t classes_per_client = 2;  // pathological, distribution-1
  int64_t records_per_client = 600;  // resample
  int64_t private_label = 0;         // private-label, distribution-1/2: the class the curious client (the last) lacks
  double train_fraction = 1.0;       // keep this share of each client's training records
  double test_fraction = 0.2;        // held out per client where the dataset has no test split of its own
  int64_t min_records = 1;  // every client gets at least this many training records, or the partition is an error

  bool operator==(const DataOptions&) const = default;
};

// [model]
struct ModelOptions {
  std::string name = "cnn";     // a model known to the catalogue of models
  std::string weights;          // "" = random; a file, or the name of installed or pretrained weights
  std::string norm = "group";   // ResNets: group or batch
  std::vector<int64_t> hidden;  // MLP: widths of the hidden layers; empty = the model's default
  int64_t width = 0;            // ViT: 0 = the named size's own value
  int64_t depth = 0;            // ViT
  int64_t heads = 0;            // ViT
  int64_t patch = 4;            // ViT
  int64_t adapter = 0;          // ViT: bottleneck of the adapter after each block; 0 = none
  double dropout = 0.0;
  bool freeze_backbone = false;       // train only adapters, projection and head
  std::vector<std::string> personal;  // name prefixes of parameters that never leave the client (e.g. "head.")

  bool operator==(const ModelOptions&) const = default;
};

// [federation]
struct FederationOptions {
  int64_t cohort = 0;              // clients per round; 0 = all (Poisson: the expected number)
  std::string sampling = "fixed";  // fixed: exactly `cohort` clients; poisson: each with probability cohort/clients
  int64_t local_epochs = 1;
  int64_t batch = 32;
  double lr = 0.05;
  std::string optimizer = "sgd";  // sgd, adam, adamw
  double momentum = 0.0;
  double weight_decay = 0.0;
  int64_t eval_every = 1;        // evaluate after every so many rounds, and always after the last
  int64_t eval_clients = 0;      // evaluate on this many clients, the same each time; 0 = all
  std::string state = "memory";  // where clients' personal state lives between rounds: memory or disk

  bool operator==(const FederationOptions&) const = default;
};

// [privacy]: stated, never assumed. Absent = the run releases everything in the clear, and says so.
struct PrivacyOptions {
  double epsilon = 0.0;
  double delta = 0.0;
  std::string adjacency;            // add-remove, replace, replace-same-label
  std::string unit = "record";      // record or client
  std::string observer = "server";  // server, clients, public
  std::string noise = "replay";     // secure or replay
  std::vector<double> budgets;      // clients' own ε; empty = epsilon for everyone
  // How the budgets are dealt. Empty: in turn, client i has budgets[i mod length]. Otherwise every client draws its
  // own, budgets[k] with a probability proportional to budget_shares[k].
  std::vector<double> budget_shares;
  uint64_t budget_seed = 0;  // of those draws; as written, or the run's seed

  // What client `id` may spend.
  double budget_of(int64_t id) const;
  double least_budget() const;
  // Whoever protects against clients or the public trusts the server with bounded values.
  bool trusts_server() const { return observer != "server"; }

  bool operator==(const PrivacyOptions&) const = default;
};

// [fit]: how `sotto fit` learns a clipping curve. Not part of a run.
struct FitOptions {
  std::string proxy;            // the public dataset that stands for the clients' data; its partition is that of [data]
  int64_t limit = 0;            // training records of it; 0 = as [data]
  int64_t clients = 0;          // simulated; 0 = as [data]
  int64_t rounds = 0;           // simulated; 0 = as the run
  std::vector<double> budgets;  // ε to try; empty = those of [privacy]
  std::vector<double> bounds;   // clipping bounds to try
  int64_t repeats = 3;          // seeds per pair
  std::string axis = "epsilon";  // what the bound is a function of: epsilon, or noise (signal over noise of a step)
  bool outliers = true;          // drop points by the inter-quartile rule
  bool monotone = false;         // the bound never falls as the budget grows

  bool operator==(const FitOptions&) const = default;
};

// [sweep]: the table that `sotto sweep` makes of this config. Not part of a run.
struct SweepRow {
  std::string name;
  std::vector<std::string> set;  // key=value, as for --set

  bool operator==(const SweepRow&) const = default;
};
struct SweepOptions {
  std::vector<SweepRow> rows;     // named settings; each is combined with the whole grid
  std::vector<std::string> grid;  // KEY=V1,V2,…, as for --grid
  int64_t seeds = 5;
  std::string against;  // the row that the others are tested against
  std::string metric = "accuracy.mean";
  std::vector<std::string> quick;       // what --quick sets
  std::vector<std::string> quick_grid;  // the grid of --quick; empty = grid

  bool operator==(const SweepOptions&) const = default;
};

// [record]
struct RecordOptions {
  bool uploads = false;          // keep every upload in the run directory, for attacks
  int64_t checkpoint_every = 1;  // rounds between checkpoints

  bool operator==(const RecordOptions&) const = default;
};

struct RunSpec {
  std::string name;  // a label for people; not part of the hash
  uint64_t seed = 1;
  int64_t rounds = 10;
  DataOptions data;
  ModelOptions model;
  FederationOptions federation;
  std::string method = "fedavg";
  std::string variant = "sound";
  std::string method_options;  // the method's own keys, resolved, as canonical JSON: its parser reads them
  std::optional<PrivacyOptions> privacy;
  RecordOptions record;
  std::optional<FitOptions> fit;
  std::optional<SweepOptions> sweep;

  // SHA-256 of the resolved settings that determine the result.
  std::string hash() const;
  // Without [fit] and [sweep], which speak of other runs than this one.
  nlohmann::json to_json() const;
  // TOML that loads to the same.
  std::string to_toml() const;
};

}  // namespace sotto::config
