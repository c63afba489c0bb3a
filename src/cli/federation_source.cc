#include "cli/federation_source.h"

#include "base/error.h"

#include <utility>

namespace sotto::cli {

federation::FederationPlan load_plan(const run::ConfigSource& source) {
  const config::RunSpec spec = run::load_spec(source);
  auto declared = run::load_table(source, config::kDeclaredTable);
  if (!declared) {
    fail_user(
        "{} has no [declared]: a server sees no records, so that their shape, classes and number must be stated; "
        "see docs/deployment.md",
        source.config);
  }
  return {spec, std::move(*declared), run::load_table(source, config::kServeTable)};
}

}  // namespace sotto::cli
