#include "cli/model_source.h"

#include "base/error.h"
#include "base/shell_word.h"
#include "member/home_model.h"
#include "privacy/home.h"
#include "serve/server_model.h"
#include "serve/status.h"

#include <optional>

namespace sotto::cli {

void add_model_options(Command& command, ModelSource& source) {
  command.option("--client", source.client, "A run: use this client's model (default: the global one)").at_least(0);
  command.option("--federation", source.federation, "A home with several federations: how the plan's hash begins");
}

artifacts::TrainedModel open_model(const ModelSource& source) {
  const bool is_home = privacy::Home::is_home(source.folder);
  if (!is_home && !source.federation.empty()) fail_user("--federation belongs to the home of a client");
  if (is_home) {
    if (source.client >= 0) fail_user("--client: {} is the home of one client, whose model it is", source.folder);
    return member::home_model(source.folder, source.federation);
  }
  if (serve::is_server_folder(source.folder)) {
    if (source.client >= 0) fail_user("--client: the models of clients are at their homes, and not with the server");
    return serve::server_model(source.folder);
  }
  return {source.folder, source.client < 0 ? std::nullopt : std::optional(source.client)};
}

void refuse_home(const std::string& folder, const std::string& what) {
  if (!privacy::Home::is_home(folder)) return;
  fail_user(
      "{} is the home of a client, and {} is for run directories: see `sotto status {}`, `sotto ledger show {}` and "
      "federations/PLAN/metrics.jsonl in it",
      folder, what, shell_word(folder), shell_word(folder));
}

}  // namespace sotto::cli
