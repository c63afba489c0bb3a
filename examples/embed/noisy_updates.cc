#include "methods.h"

#include <ATen/ATen.h>

namespace {

double read_clip(sotto::Settings& settings) {
  return settings.number("clip", 1.0, 1e-6);
}

// As much noise as keeps all releases of this client within its budget.
sotto::Channel updates_of(const sotto::PublicContext& context, const sotto::ClientFacts& client) {
  return {.what = "update",
          .like = context.initial_model(),
          .bound = context.options<double>(),
          .noise_multiplier = context.noise_multiplier(client, client.participations),
          .times = client.participations,
          .declared = {{"records", static_cast<double>(client.records)}}};
}

void step(sotto::Step& step) {
  step.release(updates_of(step, step.facts()), [&] {
    step.train();
    sotto::Tensors update;
    for (const auto& [name, value] : step.model()) {
      update.emplace_back(name, value - sotto::find(step.broadcast(), name));
    }
    return update;
  });
}

}  // namespace

sotto::Method noisy_updates() {
  return {
      .name = "noisy-updates",
      .what = "whole updates, clipped and noised at the clients",
      .read_options = read_clip,
      .step = step,
      .plan = [](const sotto::PublicContext& context,
                 const sotto::ClientFacts& client) { return std::vector<sotto::Channel>{updates_of(context, client)}; },
      .make_server = sotto::updating_server};
}
