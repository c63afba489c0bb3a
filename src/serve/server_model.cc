#include "serve/server_model.h"

#include "artifacts/run_directory.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "federation/federation_plan.h"
#include "serve/server.h"

namespace sotto::serve {

artifacts::TrainedModel server_model(const fs::path& folder) {
  const artifacts::RunReader run(folder);
  const federation::FederationPlan plan(trim(read_file(folder / kPlanFile)));
  const config::RunSpec& spec = plan.setup().spec();
  if (!plan.setup().method().global(spec)) {
    fail_user("{} has no global model: every client has its own, at its home", spec.method);
  }
  const auto checkpoint = run.last_checkpoint(spec);
  if (!checkpoint) fail_user("{} has no model yet: its first round is not over", folder.string());
  return {
      federation::Setup::without_records(plan.setup()), checkpoint->broadcast, {}, std::nullopt, "", checkpoint->round};
}

}  // namespace sotto::serve
