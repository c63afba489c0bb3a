// All clients in this process, on as many threads as asked for.
#pragma once

#include "federation/client_runtime.h"
#include "federation/cohort.h"
#include "federation/evaluator.h"
#include "federation/transport.h"
#include "transport/participations.h"

#include <cstdint>
#include <vector>

namespace sotto::transport {

class InProcess : public federation::Transport {
 public:
  // All arguments must outlive it.
  InProcess(const federation::Setup& setup, const federation::CohortSchedule& cohorts,
            const federation::HeldOut& held_out, federation::Workers& workers, federation::StateStore& states,
            privacy::Ledger& ledger);

  void exchange(const std::vector<int64_t>& cohort, const methods::Broadcast& broadcast,
                const std::function<void(federation::Reply&&)>& accept) override;
  federation::Predictions test(const methods::Broadcast& broadcast) override;
  void evaluate(const std::vector<int64_t>& clients, const methods::Broadcast& broadcast,
                const std::function<void(federation::ClientScore&&)>& accept) override;

 private:
  // Calls work(runtime of the client, its position) on all threads, and accept(answer) in the order of the clients.
  template <typename Answer, typename Work>
  void ask(const std::vector<int64_t>& clients, const Work& work, const std::function<void(Answer&&)>& accept);

  const federation::Setup& setup_;
  const federation::HeldOut& held_out_;
  federation::Workers& workers_;
  federation::StateStore& states_;
  privacy::Ledger& ledger_;
  Participations participations_;
};

}  // namespace sotto::transport
