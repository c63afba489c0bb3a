// A federation of homes without a network: the small federation's records, dealt to one home each.
#pragma once

#include "../federation/small_setup.h"
#include "../support/temp_folder.h"
#include "base/files.h"
#include "io/safetensors.h"
#include "member/member.h"
#include "serve/server.h"
#include "settings/toml.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace sotto::serve {

using test::TempFolder;

inline constexpr int64_t kClients = 3;

inline settings::Section table(const std::string& toml, const std::string& name) {
  settings::ParsedToml parsed = settings::parse_toml(toml, "test.toml");
  return {std::move(parsed.value), name, parsed.source};
}

inline std::string config(const std::string& method, int rounds = 2) {
  return fmt::format(
      "rounds = {}\nseed = 7\n[data]\nclients = {}\n[federation]\nbatch = 16\n{}[method]\nname = \"{}\"\n{}{}", rounds,
      kClients, federation::step_of(method), method, federation::needed_options(method),
      federation::privacy_terms(method));
}

// What is declared of the small federation with so many clients.
inline federation::FederationPlan plan_of(const federation::Setup& setup, const std::string& serve = "",
                                          const std::string& declared = "") {
  const int64_t records = setup.dataset().train.size() / setup.spec().data.clients;
  return {setup.spec(),
          table(fmt::format("kind = \"features\"\nshape = [6]\nclasses = [\"a\", \"b\", \"c\"]\nrecords = {}\n{}",
                            records, declared),
                "declared"),
          table(serve, "serve")};
}

inline std::shared_ptr<const models::TaskData> records_of(const federation::Setup& setup, int64_t client) {
  auto own = std::make_shared<models::TaskData>(setup.data());
  const data::Shard shard = setup.partition().shard(client);
  const auto keep = [](data::Records& records, const at::Tensor& rows) {
    records.x = records.x.index_select(0, rows);
    records.y = records.y.index_select(0, rows);
    records.domain = records.domain.index_select(0, rows);
  };
  keep(own->dataset.train, shard.train);
  keep(own->dataset.test, shard.test);
  return own;
}

inline member::Policy policy_for(const config::RunSpec& spec) {
  member::Policy policy;
  policy.budget.epsilon = 1000;
  policy.budget.delta = spec.privacy ? spec.privacy->delta : 1e-3;
  if (spec.privacy) {
    policy.budget.adjacency = spec.privacy->adjacency;
    policy.budget.unit = spec.privacy->unit;
    policy.budget.observer = spec.privacy->observer;
  }
  policy.methods = {spec.method};
  policy.variants = {"sound", "paper"};
  policy.trust = {"local", "central"};
  policy.unproven = true;
  policy.declare = {"records"};
  policy.noise = privacy::Generator::kReplay;
  return policy;
}

// One client's side, begun anew as often as one likes.
class HomeOf {
 public:
  HomeOf(const fs::path& folder, const federation::Setup& setup, const federation::FederationPlan& plan, int64_t client)
      : HomeOf(folder, setup, plan, client, policy_for(setup.spec())) {}

  HomeOf(fs::path folder, const federation::Setup& setup, const federation::FederationPlan& plan, int64_t client,
         member::Policy policy)
      : folder_(std::move(folder)), plan_(plan), client_(client), policy_(std::move(policy)) {
    if (!fs::exists(folder_)) {
      make_folder(folder_);
      const auto& budget = policy_.budget;
      write_file_atomically(
          folder_ / "policy.toml",
          fmt::format("[budget]\nepsilon = {}\ndelta = {}\nadjacency = \"{}\"\nunit = \"{}\"\nobserver = \"{}\"\n",
                      budget.epsilon, budget.delta, settings::word(budget.adjacency), settings::word(budget.unit),
                      settings::word(budget.observer)));
    }
    data_ = records_of(setup, client);
    open();
  }

  void open() {
    member_.reset();
    home_.reset();
    home_ = std::make_unique<privacy::Home>(
        folder_, privacy::HomeRecords{.name = "blobs", .content = std::to_string(client_), .dealt = "", .clients = 1});
    member_ = std::make_unique<member::Member>(*home_, policy_, plan_, client_,
                                               federation::Setup::at_home(plan_.setup(), client_, data_));
  }

  member::Member& member() { return *member_; }
  privacy::Home& home() { return *home_; }
  member::Policy& policy() { return policy_; }

 private:
  fs::path folder_;
  const federation::FederationPlan& plan_;
  int64_t client_;
  member::Policy policy_;
  std::shared_ptr<const models::TaskData> data_;
  std::unique_ptr<privacy::Home> home_;
  std::unique_ptr<member::Member> member_;
};

inline methods::Broadcast read_broadcast(Hub& hub, const Work& work) {
  const auto file = hub.broadcast_file(work.digest);
  const int64_t round = work.kind == Work::Kind::kOver ? work.round : work.round - 1;
  return {round, clone(io::read_safetensors(*file).tensors)};
}

// Hands a sealed upload to the hub in pieces of this size.
inline Answer hand_in(Hub& hub, int64_t client, const member::SealedUpload& upload, size_t piece = 1 << 20) {
  const std::string bytes = read_file(upload.file);
  Answer answer = hub.offer(client, {.round = upload.round,
                                     .key = upload.key,
                                     .digest = upload.digest,
                                     .bytes = upload.bytes,
                                     .releases = upload.releases});
  while (answer.verdict == Verdict::kSend) {
    answer = hub.append(client, upload.key, answer.offset,
                        std::string_view(bytes).substr(static_cast<size_t>(answer.offset), piece));
  }
  return answer;
}

// Whatever the server asks for, until everything is over.
inline void follow(Hub& hub, std::vector<std::unique_ptr<HomeOf>>& homes) {
  std::vector<bool> over(homes.size());
  while (std::find(over.begin(), over.end(), false) != over.end()) {
    for (size_t i = 0; i < homes.size(); ++i) {
      const auto client = static_cast<int64_t>(i);
      const Work work = hub.work_for(client);
      homes[i]->member().settle(work.durable_round);
      if (work.kind == Work::Kind::kOver) over[i] = true;
      if (work.kind != Work::Kind::kRound) continue;
      const member::Outcome outcome = homes[i]->member().work(read_broadcast(hub, work));
      if (outcome.upload) {
        const Answer answer = hand_in(hub, client, *outcome.upload, 1000);
        ASSERT_EQ(answer.verdict, Verdict::kStored) << answer.reason;
      } else {
        hub.skip(client, work.round);
      }
    }
  }
}

}  // namespace sotto::serve
