// UCI Heart Disease: four hospitals, 13 measurements, whether the patient has the disease.
#pragma once

#include "data/dataset.h"
#include "data/file_tree.h"

#include <string>

namespace sotto::data {

// processed.{cleveland,hungarian,switzerland,va}.data, those that are there; each hospital is a domain. Scaling uses
// the constants of a public schema, never the records, so that no hospital learns anything from another's data.
Dataset read_heart_disease(const FileTree& tree, const std::string& name);

}  // namespace sotto::data
