// Where records came from, so that data taken for public is found out if it is the clients' own under another name.
#pragma once

#include "data/dataset.h"
#include "data/options.h"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <vector>

namespace sotto::data {

// The training records of a dataset, or of one of its domains.
struct Part {
  std::string dataset;       // as `sotto data list` has it, or the absolute path of the user's own
  std::string domain = {};   // "" = all of them
  std::string content = {};  // SHA-256 of its records, whatever their order; "" = not known

  bool operator==(const Part&) const = default;
};

using Origin = std::vector<Part>;

// The parts that `options` draw on, as they are before sizes, transforms and limits: a sample counts as the whole. A
// family such as digits has those of its members. Reads the data.
Origin origin_of(const DataOptions& options);

// The same by name and path alone, for data that is not here.
Origin named_origin(const DataOptions& options);
// What is known of records if only the dataset's name was written down.
Origin named_origin(const std::string& dataset);

// The part of `one` that shares records with `other`, as far as can be told: it has the name or path of one of them and
// no other domain, or the same records. Copies that are changed, or a part of the records in a file of their own, go
// unnoticed.
std::optional<Part> common_part(const Origin& one, const Origin& other);

// For messages: "mnist", "domain art of pacs".
std::string describe(const Part& part);

nlohmann::json to_json(const Origin& origin);
// Throws nlohmann's exceptions.
Origin origin_from(const nlohmann::json& value);

}  // namespace sotto::data
