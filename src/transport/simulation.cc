#include "transport/simulation.h"

#include "federation/cohort.h"
#include "transport/inprocess.h"
#include "transport/over_ranks.h"

#include <utility>

namespace sotto::transport {

Simulation::Simulation(const federation::Setup& setup, federation::StateStore& states, privacy::Ledger& ledger,
                       const SimulationOptions& options)
    : setup_(setup),
      states_(states),
      cohorts_(setup_.spec()),
      held_out_(setup_, federation::evaluated_clients(setup_.spec())),
      workers_(federation::make_workers(setup_, options.threads)) {
  const int64_t round = options.resume ? options.resume->round : 0;
  if (options.ranks == nullptr) {
    states_.restore(round);
    transport_ = std::make_unique<InProcess>(setup_, cohorts_, held_out_, workers_, states_, ledger);
  } else {
    auto over_ranks = std::make_unique<OverRanks>(
        RankParts{setup_, held_out_, workers_, states_, ledger, *options.ranks}, cohorts_, round);
    over_ranks_ = over_ranks.get();
    transport_ = std::move(over_ranks);
  }
  evaluator_ = std::make_unique<federation::Evaluator>(setup_, held_out_, *transport_);
  federation_ = std::make_unique<federation::Federation>(
      setup_.published(), [this](int64_t at) { return cohorts_.cohort(at); }, *transport_, evaluator_.get(), ledger,
      options.resume, options.watcher);
}

Simulation::~Simulation() = default;

void Simulation::commit_states() {
  const int64_t round = broadcast().round;
  if (over_ranks_ == nullptr) return states_.commit(round);
  over_ranks_->commit_states(round);
}

Traffic Simulation::traffic() const {
  return over_ranks_ == nullptr ? Traffic{} : over_ranks_->traffic();
}

}  // namespace sotto::transport
