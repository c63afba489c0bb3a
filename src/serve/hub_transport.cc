#include "serve/hub_transport.h"

#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "privacy/event_json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>
#include <utility>

namespace sotto::serve {
namespace {

using nlohmann::json;

constexpr size_t kMostRows = 64;  // of one client in one round

// The rows as the sender describes them: of this round and client, of kinds that the plan has, each once. A UserError
// otherwise.
std::vector<privacy::Event> planned_releases(const methods::ReleasePlan& plan, int64_t round, int64_t client,
                                             const std::string& releases) {
  const json rows = json::parse(releases, nullptr, false);
  if (!rows.is_array() || rows.empty() || rows.size() > kMostRows) {
    fail_user("it does not say which releases it is made of");
  }
  std::vector<privacy::Event> events;
  for (const json& row : rows) {
    privacy::Event event = privacy::event_from(row);
    const bool planned =
        std::any_of(plan.begin(), plan.end(), [&](const privacy::Channel& channel) { return channel.makes(event); });
    if (!planned) fail_user("'{}' is not a release of the plan", event.what);
    if (event.round != round || event.client != client) fail_user("'{}' is of another round or client", event.what);
    const bool again = std::any_of(events.begin(), events.end(), [&](const privacy::Event& other) {
      return other.what == event.what && other.observer == event.observer;
    });
    if (again) fail_user("'{}' is there twice", event.what);
    events.push_back(std::move(event));
  }
  return events;
}

methods::ReleasePlan releases_of(const federation::PublicSetup& setup) {
  return setup.plan_for(setup.facts_of(0, setup.facts().least_records));
}

}  // namespace

HubTransport::HubTransport(Hub& hub, const federation::FederationPlan& plan, privacy::Ledger& ledger,
                           std::function<bool()> stop)
    : hub_(hub),
      plan_(plan),
      releases_(std::make_shared<const methods::ReleasePlan>(releases_of(plan.setup()))),
      ledger_(ledger),
      stop_(std::move(stop)) {}

void HubTransport::exchange(const std::vector<int64_t>&, const methods::Broadcast& broadcast,
                            const std::function<void(federation::Reply&&)>& accept) {
  const int64_t round = broadcast.round + 1;
  const auto shape = std::make_shared<const privacy::UploadShape>(
      plan_.setup().method().upload_shape(plan_.setup().context(), broadcast));
  // Whatever is wrong with an upload is found while its sender still listens.
  hub_.set_inspector(
      [shape, releases = releases_](int64_t of_round, int64_t client, const Upload& upload) -> std::string {
        try {
          planned_releases(*releases, of_round, client, upload.releases);
          privacy::decode(read_file(upload.file), *shape);
          return "";
        } catch (const privacy::UploadRefused& refusal) {
          return refusal.what();
        } catch (const UserError& error) {
          return error.what();
        }
      });
  hub_.publish(broadcast, false);
  const auto reporters = hub_.collect(round, stop_);
  if (!reporters) throw Interrupted("stopped; start it again with the same folder, and it goes on");
  // Rows are written once, however often the round is folded.
  const std::vector<privacy::Event> known = ledger_.events(round, round);
  for (const int64_t client : *reporters) {
    const Upload upload = hub_.upload(round, client);
    federation::Reply reply;
    reply.client = client;
    reply.report.noise_norm = std::nullopt;
    try {
      for (const privacy::Event& event : planned_releases(*releases_, round, client, upload.releases)) {
        if (std::find(known.begin(), known.end(), event) == known.end()) ledger_.spend(event);
      }
      reply.upload = privacy::decode(read_file(upload.file), *shape);
    } catch (const privacy::BudgetSpent& refusal) {
      reply.abstained = refusal.what();
    } catch (const privacy::UploadRefused& refusal) {
      reply.failure = refusal.what();
    }
    accept(std::move(reply));
  }
}

}  // namespace sotto::serve
