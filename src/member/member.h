// One client of a federation at its home, without the network: what it works on, what it seals, what it may send.
//
// Nothing was released until bytes left, and bytes leave only after one commit:
//
//   idle      →  working    memory only: a crash costs nothing
//   working   →  sealed     upload and new personal state written and synced; then one commit in the home's ledger of the
//                           rows, what was sealed, where the state is, and one participation more
//   sealed    →  sending    these bytes and no others, any number of times
//   sending   →  settled    the server will never ask for them again: they are removed
//
//   HOME/outbox/PLAN-ROUND.safetensors     what is sealed and not settled
//   HOME/states/PLAN-ROUND.safetensors     the personal model after that round
#pragma once

#include "federation/client_score.h"
#include "federation/federation_plan.h"
#include "federation/messages.h"
#include "federation/setup.h"
#include "federation/state_store.h"
#include "federation/transport.h"
#include "member/policy.h"
#include "privacy/home.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sotto::member {

// An upload that is on disk and paid for.
struct SealedUpload : federation::Offer {
  std::filesystem::path file;
};

// What became of a round's work.
struct Outcome {
  std::optional<SealedUpload> upload;
  // The round is done without one, for a reason that everybody may know: the method sends nothing in this round, or the
  // budget is spent.
  bool skips = false;
  // For the owner: why there is no upload. Where it does not skip it depends on the records, and silence is all that
  // anybody else may notice.
  std::string why;
  double sealing_seconds = 0;  // what writing, syncing and committing took
};

// What taking part would cost, before anything is agreed to or written.
struct Prospect {
  int64_t client = 0;  // whose budget is the largest: nobody has a place yet
  int64_t records = 0;
  double budget = 0;    // ε over all federations
  double spent = 0;     // of it
  double promised = 0;  // with this federation

  bool is_affordable() const;
};
// No home: nothing was ever released.
Prospect prospect(privacy::Home* home, const Policy& policy, const federation::FederationPlan& plan, int64_t records);

// NotAllowed if no place in the federation is within the budget. Whoever takes part already was asked at joining.
void require_affordable(privacy::Home& home, const Policy& policy, const federation::FederationPlan& plan,
                        int64_t records);

// The personal state after the last round that was worked on; empty, of round 0, if there is none.
struct PersonalState {
  int64_t client = 0;  // the home's number in the federation
  int64_t round = 0;
  privacy::PrivateState state;
};
// Also beside the process that takes part. A UserError if the home does not take part in the plan.
PersonalState read_personal_state(const privacy::Home& home, const federation::FederationPlan& plan);

// The records of a home, as its ledger knows them. `source` is where they came from.
privacy::HomeRecords home_records(const data::DataOptions& source, const models::TaskData& data);

class Member {
 public:
  // Takes part in the plan from here on, or goes on doing so after a restart. `setup` is of the plan and of these
  // records (Setup::at_home). What the policy or the budget does not allow is NotAllowed, and nothing is written then.
  // All arguments but the setup must outlive it.
  Member(privacy::Home& home, const Policy& policy, const federation::FederationPlan& plan, int64_t client,
         const federation::Setup& setup);
  ~Member();

  // What was sealed for the round that follows the broadcast; made first, if it is not there yet. After the last round
  // that is the released evaluation. A round before one that was worked on, one that the plan does not have, and a broadcast
  // that is none of this method's, are NotAllowed.
  Outcome work(const methods::Broadcast& broadcast);

  // The server says that we have offered this upload. A UserError if we never sealed it: this home is an old copy, which
  // has forgotten what it has released.
  void check_seen(int64_t round, const std::string& digest) const;

  // The server needs nothing of rounds up to this one any more.
  void settle(int64_t durable_round);

  // The model at hand on held-out records; for the owner's eyes.
  federation::ClientScore evaluate(const methods::Broadcast& broadcast);

  int64_t participations() const;
  // The last round that was worked on.
  int64_t last_round() const;
  // The ε of everything the home has released, before the budget's observer.
  double spent_epsilon() const;

 private:
  struct Progress;
  class OwnState;
  void join();
  Progress read_progress() const;
  void write_progress(const Progress& progress);
  void require_affordable() const;
  void charge_the_server(int64_t round, privacy::Ledger& ledger) const;
  std::optional<std::string> braked() const;
  bool is_evaluation(int64_t round) const;
  federation::Reply evaluation_reply(const methods::Broadcast& broadcast, privacy::Ledger& ledger);
  Outcome seal(int64_t round, Progress progress, const privacy::Upload& upload, const std::string& releases);
  std::optional<SealedUpload> sealed(const Progress& progress) const;
  std::filesystem::path outbox_file(int64_t round) const;
  std::filesystem::path state_file(int64_t round) const;

  privacy::Home& home_;
  const Policy& policy_;
  const federation::FederationPlan& plan_;
  const int64_t client_;
  const federation::Setup setup_;
  const NamedTensors first_broadcast_;  // what those of this method look like
  std::unique_ptr<methods::ClientMethod> method_;
  std::unique_ptr<OwnState> state_;
};

}  // namespace sotto::member
