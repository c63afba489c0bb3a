#include "federation/client_runtime.h"

namespace sotto::federation {

privacy::ReleaseContext release_context(const PublicSetup& setup, privacy::Ledger& ledger, int64_t round,
                                        int64_t client) {
  const bool secure = setup.spec().privacy && setup.spec().privacy->generator == privacy::Generator::kSecure;
  return {.ledger = ledger,
          .round = round,
          .client = client,
          .generator = secure ? privacy::Generator::kSecure : privacy::Generator::kReplay,
          .seed = setup.spec().seed,
          .why_unproven = setup.why_unproven()};
}

ClientRuntime::ClientRuntime(const Setup& setup, int64_t client, methods::ClientMethod& method, StateStore& states,
                             privacy::Ledger& ledger)
    : setup_(setup), client_(client), method_(method), states_(states), ledger_(ledger) {}

Reply ClientRuntime::serve(const methods::Broadcast& broadcast, int64_t participation) {
  Reply reply;
  reply.client = client_;
  const int64_t round = broadcast.round + 1;
  const data::Shard shard = setup_.partition().shard(client_);
  const methods::StepContext context{.seed = setup_.spec().seed,
                                     .release = release_context(setup_.published(), ledger_, round, client_),
                                     .own = setup_.facts_of(client_),
                                     .participation = participation};
  privacy::PrivateState state = states_.get(client_);
  methods::StepResult result;
  try {
    result = method_.step(broadcast, shard, state, context);
  } catch (const privacy::BudgetSpent& refusal) {
    reply.abstained = refusal.what();
    return reply;
  }
  reply.report = result.report;
  if (result.report.diverged) {
    reply.failure = "training diverged: the loss or a weight is not finite";
    return reply;
  }
  if (!state.empty()) states_.put(client_, round, std::move(state));
  reply.upload = std::move(result.upload);
  return reply;
}

ClientScore ClientRuntime::evaluate(const methods::Broadcast& broadcast, const HeldOut& held_out) {
  method_.select(broadcast, states_.get(client_));
  ClientScore score = score_client(setup_, client_, held_out,
                                   [&](const at::Tensor& rows) { return predict(method_, held_out.records, rows); });
  score.validation_accuracy = validation_accuracy(setup_, client_, method_);
  return score;
}

}  // namespace sotto::federation
