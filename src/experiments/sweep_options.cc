#include "experiments/sweep_options.h"

namespace sotto::experiments {

SweepOptions read_sweep_options(settings::Section section) {
  SweepOptions o;
  for (settings::Section& table : section.children("rows")) {
    SweepRow row;
    row.name = table.text("name", row.name);
    row.set = table.texts("set", row.set);
    if (row.name.empty()) table.fail("name", "is missing; say what the row is called");
    table.finish();
    o.rows.push_back(std::move(row));
  }
  o.grid = section.texts("grid", o.grid);
  o.seeds = section.integer("seeds", o.seeds, settings::at_least(1));
  o.against = section.text("against", o.against);
  o.metric = section.text("metric", o.metric);
  o.quick = section.texts("quick", o.quick);
  o.quick_grid = section.texts("quick_grid", o.quick_grid);
  section.finish();
  return o;
}

}  // namespace sotto::experiments
