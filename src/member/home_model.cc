#include "member/home_model.h"

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "member/federation_folder.h"
#include "member/member.h"
#include "member/records.h"

#include <algorithm>
#include <vector>

namespace sotto::member {
namespace {

FederationFolder chosen_federation(const fs::path& home, const std::string& federation) {
  std::vector<FederationFolder> fitting;
  std::vector<std::string> names;
  for (const FederationFolder& folder : FederationFolder::all(home)) {
    names.push_back(folder.name());
    if (folder.name().starts_with(federation.substr(0, folder.name().size()))) fitting.push_back(folder);
  }
  if (names.empty()) fail_user("{} has no model: no federation was joined with it", home.string());
  if (fitting.size() == 1) return fitting.front();
  if (fitting.empty())
    fail_user("{} has joined no federation {}; it has {}", home.string(), federation, join(names, ", "));
  fail_user("{} has joined several federations; name one with --federation: {}", home.string(), join(names, ", "));
}

}  // namespace

artifacts::TrainedModel home_model(const fs::path& home, const std::string& federation) {
  const Policy policy = read_policy(home);
  const FederationFolder folder = chosen_federation(home, federation);
  const federation::FederationPlan plan = folder.plan();
  const PersonalState own = read_personal_state(privacy::Home(home), plan);
  const auto broadcast = folder.last_broadcast();
  if (!broadcast) {
    fail_user("{} has no model yet: no round of the federation {} was worked on", home.string(), folder.name());
  }
  return {federation::Setup::at_home(plan.setup(), own.client, load_records(policy, plan)),
          *broadcast,
          own.state,
          own.client,
          policy.name.empty() ? home.filename().string() : policy.name,
          std::max(broadcast->round, own.round)};
}

}  // namespace sotto::member
