#include "experiments/fit_options.h"

namespace sotto::experiments {

FitOptions read_fit_options(settings::Section section) {
  FitOptions o;
  o.proxy = section.text("proxy", o.proxy);
  o.limit = section.integer("limit", o.limit, settings::at_least(0));
  o.clients = section.integer("clients", o.clients, settings::at_least(0));
  o.rounds = section.integer("rounds", o.rounds, settings::at_least(0));
  o.budgets = section.numbers("budgets", o.budgets, settings::kPositive);
  o.bounds = section.numbers("bounds", o.bounds, settings::kPositive);
  o.repeats = section.integer("repeats", o.repeats, settings::at_least(1));
  o.axis = section.choice("axis", o.axis);
  o.outliers = section.boolean("outliers", o.outliers);
  o.monotone = section.boolean("monotone", o.monotone);
  section.finish();
  return o;
}

}  // namespace sotto::experiments
