#include "transport/simulation.h"

namespace sotto::transport {

Simulation::Simulation(const federation::Setup& setup, federation::StateStore& states, privacy::Ledger& ledger,
                       const SimulationOptions& options)
    : setup_(setup),
      cohorts_(setup_.spec()),
      held_out_(setup_, federation::evaluated_clients(setup_.spec())),
      workers_(federation::make_workers(setup_, options.threads)),
      transport_(setup_, cohorts_, held_out_, workers_, states, ledger),
      evaluator_(setup_, held_out_, workers_, transport_),
      federation_(
          setup_.published(), [this](int64_t round) { return cohorts_.cohort(round); }, transport_, &evaluator_, ledger,
          options.resume, options.watcher) {
  states.restore(options.resume ? options.resume->round : 0);
}

}  // namespace sotto::transport
