#include "methods/run_settings.h"

#include "settings/choice_json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace sotto::methods {

FederationOptions read_federation_options(settings::Section section, int64_t clients) {
  FederationOptions o;
  o.cohort = section.integer("cohort", o.cohort, settings::at_least(0));
  o.sampling = section.choice("sampling", o.sampling);
  o.local_epochs = section.integer("local_epochs", o.local_epochs, settings::at_least(1));
  o.batch = section.integer("batch", o.batch, settings::at_least(1));
  o.lr = section.number("lr", o.lr, settings::kPositive);
  o.optimizer = section.choice("optimizer", o.optimizer);
  o.momentum = section.number("momentum", o.momentum, {.low = 0, .high = 1, .high_excluded = true});
  o.weight_decay = section.number("weight_decay", o.weight_decay, settings::kNonNegative);
  o.fine_tune = section.integer("fine_tune", o.fine_tune, settings::between(0, 10'000));
  o.fine_tune_lr = section.number("fine_tune_lr", o.fine_tune_lr, settings::kNonNegative);
  o.eval_every = section.integer("eval_every", o.eval_every, settings::at_least(1));
  o.eval_clients = section.integer("eval_clients", o.eval_clients, settings::at_least(0));
  o.global_test = section.integer("global_test", o.global_test, settings::at_least(0));
  o.state = section.choice("state", o.state);
  if (o.cohort > clients) {
    section.fail("cohort",
                 fmt::format("is {}, more than the {} clients; lower it, or raise data.clients", o.cohort, clients));
  }
  if (o.eval_clients > clients) {
    section.fail("eval_clients",
                 fmt::format("is {}, more than the {} clients; 0 evaluates on all of them", o.eval_clients, clients));
  }
  const FederationOptions fallback;
  section.only_if(o.cohort > 0, "sampling", o.sampling == fallback.sampling,
                  "with cohort = 0, where everyone takes part");
  section.only_if(o.optimizer == Optimizer::kSgd, "momentum", o.momentum == fallback.momentum,
                  fmt::format("with optimizer = \"{}\"", settings::word(o.optimizer)));
  section.only_if(o.fine_tune > 0, "fine_tune_lr", o.fine_tune_lr == 0, "without fine_tune");
  section.finish();
  return o;
}

nlohmann::json to_json(const FederationOptions& o) {
  nlohmann::json value = {{"cohort", o.cohort},
                          {"sampling", o.sampling},
                          {"local_epochs", o.local_epochs},
                          {"batch", o.batch},
                          {"lr", o.lr},
                          {"optimizer", o.optimizer},
                          {"momentum", o.momentum},
                          {"weight_decay", o.weight_decay},
                          {"eval_every", o.eval_every},
                          {"eval_clients", o.eval_clients},
                          {"state", o.state}};
  if (o.global_test > 0) value["global_test"] = o.global_test;
  if (o.fine_tune > 0) {
    value["fine_tune"] = o.fine_tune;
    value["fine_tune_lr"] = o.fine_tune_lr;
  }
  return value;
}

}  // namespace sotto::methods
