#include "serve/hub_transport.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "federation/released_evaluation.h"
#include "privacy/event_json.h"
#include "privacy/upload_file.h"

#include <ATen/ATen.h>
#include <c10/util/Exception.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>
#include <utility>

namespace sotto::serve {
namespace {

using nlohmann::json;

constexpr size_t kMostRows = 64;  // of one client in one round

constexpr const char* kDeclared = "declared";

json declared_in(const privacy::Event& event) {
  const json parameters = json::parse(event.parameters, nullptr, false);
  return parameters.is_object() ? parameters.value(kDeclared, json::object()) : json::object();
}

// A number that the plan says is declared stands in the row, and is the one that came in.
void require_declared(const privacy::Channel& channel, const privacy::Event& event, const NamedTensors& values) {
  const json stated = declared_in(event);
  for (const auto& item : declared_in(channel.terms()).items()) {
    const at::Tensor value = find_tensor(values, item.key());
    const bool agrees = stated.is_object() && stated.contains(item.key()) && stated[item.key()].is_number() &&
                        value.defined() && value.numel() == 1 &&
                        value.item<double>() == stated[item.key()].get<double>();
    if (!agrees) fail_user("the '{}' in it is not what its release '{}' declares", item.key(), event.what);
  }
}

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

void require_declared(const methods::ReleasePlan& plan, const std::vector<privacy::Event>& rows,
                      const NamedTensors& values) {
  for (const privacy::Event& event : rows) {
    for (const privacy::Channel& channel : plan) {
      if (channel.makes(event)) require_declared(channel, event, values);
    }
  }
}

methods::ReleasePlan releases_of(const federation::PublicSetup& setup) {
  return setup.plan_for(setup.facts_of(0, setup.facts().least_records));
}

}  // namespace

HubTransport::HubTransport(Hub& hub, const federation::FederationPlan& plan, privacy::Ledger& ledger,
                           std::function<bool()> stop)
    : hub_(hub), plan_(plan), releases_(releases_of(plan.setup())), ledger_(ledger), stop_(std::move(stop)) {}

void HubTransport::gather(const methods::Broadcast& broadcast, const std::shared_ptr<const Expected>& expected,
                          std::optional<int64_t> quorum, const Take& take) {
  const int64_t round = broadcast.round + 1;
  // Whatever is wrong with an upload is found while its sender still listens.
  hub_.set_inspector([expected](int64_t of_round, int64_t client, const Upload& upload) -> std::string {
    try {
      const auto rows = planned_releases(expected->releases, of_round, client, upload.releases);
      require_declared(expected->releases, rows, privacy::decode_file(upload.file, expected->shape).values());
      return "";
    } catch (const privacy::UploadRefused& refusal) {
      return refusal.what();
    } catch (const UserError& error) {
      return error.what();
    }
  });
  hub_.publish(broadcast, false);
  const auto reporters = hub_.collect(round, stop_, quorum);
  if (!reporters) throw Interrupted("stopped; start it again with the same folder, and it goes on");
  // Rows are written once, however often the round is folded.
  const std::vector<privacy::Event> known = ledger_.events(round, round);
  for (const int64_t client : *reporters) {
    const Upload upload = hub_.upload(round, client);
    federation::Reply reply;
    reply.client = client;
    reply.report.noise_norm = std::nullopt;
    std::vector<privacy::Event> rows;
    try {
      rows = planned_releases(expected->releases, round, client, upload.releases);
      for (const privacy::Event& event : rows) {
        if (std::find(known.begin(), known.end(), event) == known.end()) ledger_.spend(event);
      }
      reply.upload = privacy::decode_file(upload.file, expected->shape);
    } catch (const privacy::BudgetSpent& refusal) {
      reply.abstained = refusal.what();
    } catch (const privacy::UploadRefused& refusal) {
      reply.failure = refusal.what();
    }
    // One upload that cannot be used must not end a federation that would fold it again after every start.
    try {
      take(std::move(reply), rows);
    } catch (const c10::Error& error) {
      const std::string text = error.what_without_backtrace();
      warn("round {}: the upload of client {} cannot be used and is left out: {}", round, client,
           text.substr(0, text.find('\n')));
    }
  }
}

void HubTransport::exchange(const std::vector<int64_t>&, const methods::Broadcast& broadcast,
                            const std::function<void(federation::Reply&&)>& accept) {
  auto expected = std::make_shared<Expected>();
  for (const privacy::Channel& channel : releases_) {
    if (channel.terms().what != federation::kEvaluation) expected->releases.push_back(channel);
  }
  expected->shape = plan_.setup().method().upload_shape(plan_.setup().context(), broadcast);
  gather(broadcast, expected, std::nullopt, [&](federation::Reply&& reply, const auto&) { accept(std::move(reply)); });
}

std::vector<ReleasedCount> HubTransport::collect_evaluation(const methods::Broadcast& broadcast) {
  constexpr int64_t kWhoever = 0;
  const auto expected = std::make_shared<Expected>(Expected{{releases_.back()}, federation::evaluation_shape()});
  std::vector<ReleasedCount> counts;
  gather(broadcast, expected, kWhoever, [&](federation::Reply&& reply, const std::vector<privacy::Event>& rows) {
    if (!reply.upload) return;
    counts.push_back({.client = reply.client,
                      .right = federation::right_count_in(reply.upload->values()),
                      .noise_stddev = rows.front().noise_scale});
  });
  return counts;
}

}  // namespace sotto::serve
