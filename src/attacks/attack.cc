#include "attacks/attack.h"

#include "artifacts/shared_work.h"
#include "base/error.h"
#include "base/files.h"
#include "base/launch.h"

#include <nlohmann/json.hpp>

namespace sotto::attacks {

using nlohmann::json;

json attack(const AttackEntry& entry, const Target& target, const AttackOptions& options) {
  if (launch().rank > 0 && !entry.shared) throw artifacts::OthersAtWork("rank 0 does this attack by itself");
  const federation::Setup& setup = target.setup();
  const int64_t clients = setup.spec().data.clients;
  if (options.client && (*options.client < 0 || *options.client >= clients)) {
    fail_user("--client {}: there are clients 0 to {}", *options.client, clients - 1);
  }
  if (options.as_printed && !entry.is_printed) fail_user("--as-printed: '{}' has no such form", entry.name);
  const fs::path folder = target.folder() / "attacks";
  make_folder(folder);
  if (entry.needs_model && !setup.method().uses_model) {
    fail_user("attack: '{}' trains no model that sees records; lira and shadow attack it", setup.spec().method);
  }
  json result = entry.run(target, options);
  result["name"] = entry.name;
  result["what"] = entry.what;
  if (launch().rank > 0) throw artifacts::OthersAtWork("rank 0 shows the result");
  write_file_atomically(folder / (entry.name + ".json"), result.dump(2) + "\n");
  return result;
}

}  // namespace sotto::attacks
