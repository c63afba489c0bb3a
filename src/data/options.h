// [data]: which records there are, and how they are dealt to clients.
#pragma once

#include "data/readers/table_schema.h"
#include "settings/section.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace sotto::data {

struct DataOptions {
  std::string name = "fashion-mnist";  // a dataset or domain family known to `sotto data list`, or "custom" with `path`
  std::vector<std::string> otherwise;  // the first of these that is installed takes its place if `name` is not
  std::string path;                    // the user's own data: a folder or file in one of the supported formats
  // The user's own data: names of the classes, in order; how many, if they are numbers. A private run must declare them
  // where no schema does.
  std::vector<std::string> classes;
  SchemaChoice schema;   // tables: ranges and categories of their columns; a private run must declare them
  std::string features;  // "" = raw records; otherwise the cached features of this frozen backbone
  // Where features are centred and, if project > 0, on how many axes they are laid: those of the features of this public
  // dataset (a name or a path), or of "random" images. "" = they stay as they are.
  std::string project_on;
  int64_t project = 0;
  // Features: taken off every record before anything else sees it. "record": the mean of its own entries; "own": the
  // mean of its client's training records, which nothing private may leave; otherwise a file with a public vector.
  std::string centre;
  bool normalise = false;  // features: every record is scaled to length 1, after `centre`
  // Domains to use, in order; empty = all of them. For a single-domain image dataset: transforms (plain, inverted,
  // rotated, edges, blurred, …) that make domains of it.
  std::vector<std::string> domains;
  int64_t image_size = 0;            // resize images to this many pixels a side; 0 = the dataset's own size
  int64_t limit = 0;                 // use at most this many training records (a seeded sample); 0 = all
  int64_t test_limit = 0;            // the same of the test split
  int64_t clients = 20;              // number of clients
  std::string partition = "iid";     // iid, dirichlet, pathological, domain, quantity, resample,
                                     // private-label, distribution-1, distribution-2
  double alpha = 0.5;                // Dirichlet concentration (dirichlet, quantity)
  int64_t classes_per_client = 2;    // pathological, distribution-1
  int64_t records_per_client = 600;  // resample
  int64_t private_label = 0;         // private-label, distribution-1/2: the class the curious client (the last) lacks
  double train_fraction = 1.0;       // keep this share of each client's training records
  double test_fraction = 0.2;        // held out per client where the dataset has no test split of its own
  double validation = 0.0;           // share of each client's training records to choose settings by, never trained on
  int64_t min_records = 1;  // every client gets at least this many training records, or the partition is an error

  bool operator==(const DataOptions&) const = default;
};

// Keys that the chosen partition does not have are errors, unless they say what is the default anyway.
DataOptions read_data_options(settings::Section section);

// The keys that mean something for the chosen partition.
nlohmann::json to_json(const DataOptions& options);

}  // namespace sotto::data
