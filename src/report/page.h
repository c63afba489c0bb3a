// The page that shows runs: one HTML file that needs nothing else, made of web/.
#pragma once

#include "report/spending.h"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace sotto::report {

struct NamedRun {
  std::string id;                // what the page calls it
  std::filesystem::path folder;  // its run directory
};

// {"version", "runs": [run_document], "comparison": compare() or null for a single run}
nlohmann::json page_document(const std::vector<NamedRun>& runs, privacy::GuaranteeCache& cache);

// The page with a document in it. Nothing in the document can become markup or script.
std::string page_html(const nlohmann::json& document);

// Invalid UTF-8, which a folder's name may hold, is replaced.
std::string to_text(const nlohmann::json& document);

}  // namespace sotto::report
