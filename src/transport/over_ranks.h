// All clients on the ranks of one job (ranks.h): client i lives on rank i mod size, with its state.
//
// Broadcasts go to all ranks at once; uploads come to rank 0, which takes them in the order of the cohort, whoever is
// faster. Where a cohort has more clients of one rank than of another, some are lent to the other for the round: their
// state goes with them and comes back. So a rank works on as many clients as the next, and the result is that of one
// process, to the last bit.
//
// Ranks know what was released so far and decide what a client can afford; the rows that its upload rests on are in rank
// 0's ledger, and durable, before the upload is handed on.
#pragma once

#include "federation/client_runtime.h"
#include "federation/cohort.h"
#include "federation/evaluator.h"
#include "federation/transport.h"
#include "transport/participations.h"
#include "transport/ranks.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace sotto::transport {

// What a rank works with. All of it must outlive whoever gets it.
struct RankParts {
  const federation::Setup& setup;
  const federation::HeldOut& held_out;
  federation::Workers& workers;
  federation::StateStore& states;  // of its own clients
  privacy::Ledger& ledger;
  Ranks& ranks;
};

// Who works for a client in one round.
struct Seat {
  int64_t client = 0;
  int64_t participation = 1;
  int home = 0;  // the rank that it lives on
  int at = 0;    // the rank that works for it: the same, or one that has less to do
};
// One seat for each client of the cohort, in its order; no rank has more than its share, rounded up.
std::vector<Seat> seat_clients(const std::vector<int64_t>& cohort, int ranks);

// At rank 0.
class OverRanks : public federation::Transport {
 public:
  // All ranks are at the states after `round` from here on; the other ranks are in work_for_rank_0.
  OverRanks(const RankParts& parts, const federation::CohortSchedule& cohorts, int64_t round);
  // The others are told that this federation is over, unless that is no longer possible.
  ~OverRanks() override;
  OverRanks(const OverRanks&) = delete;
  OverRanks& operator=(const OverRanks&) = delete;

  void exchange(const std::vector<int64_t>& cohort, const methods::Broadcast& broadcast,
                const std::function<void(federation::Reply&&)>& accept) override;
  federation::Predictions test(const methods::Broadcast& broadcast) override;
  void evaluate(const std::vector<int64_t>& clients, const methods::Broadcast& broadcast,
                const std::function<void(federation::ClientScore&&)>& accept) override;

  // Makes the states of all ranks durable as those after `round`.
  void commit_states(int64_t round);

  Traffic traffic() const;

 private:
  void tell(const std::function<nlohmann::json()>& header, const methods::Broadcast* broadcast);
  void tell_past();
  void tell_news();
  void tell_rows(const std::vector<privacy::Event>& rows);
  template <typename Unpack>
  auto received(int from, const Unpack& unpack);

  const RankParts parts_;
  Participations participations_;
  bool at_rest_ = true;      // the others wait to be told something
  int64_t held_round_ = -1;  // of the broadcast that they have
  int64_t rows_told_ = 0;    // of the ledger
  Traffic traffic_;          // without what the ranks themselves count
};

// At rank 0, in place of an OverRanks: there will be no federation after all. The others return from work_for_rank_0,
// and the ranks are finished with.
void dismiss(Ranks& ranks);

// At every other rank: does what rank 0 asks for until it says that this federation is over. `make_states` is called
// when it has begun.
void work_for_rank_0(const federation::Setup& setup,
                     const std::function<std::unique_ptr<federation::StateStore>()>& make_states, Ranks& ranks,
                     int threads);

}  // namespace sotto::transport
