#include "methods/prototypes/release_options.h"

namespace sotto::methods {

ReleaseOptions read_release_options(settings::Section& section) {
  ReleaseOptions o;
  o.mechanism = section.choice("mechanism", o.mechanism);
  o.selection = section.choice("selection", o.selection);
  o.selection_noise = section.choice("selection_noise", o.selection_noise);
  o.weighting = section.choice("weighting", o.weighting);
  o.once = section.one_of("release", "every-round", {"every-round", "once"}) == "once";
  o.closing_round = section.boolean("closing_round", o.closing_round);
  o.radius = section.number("radius", o.radius, settings::kPositive);
  o.rho = section.number("rho", o.rho, {.low = 0.0, .high = 0.5, .low_excluded = true});
  o.split = section.number("split", o.split, {.low = 0.0, .high = 1.0, .low_excluded = true, .high_excluded = true});
  o.high = section.number("high", o.high, settings::kPositive);
  o.zeta = section.number("zeta", o.zeta, settings::kPositive);
  o.centre = section.boolean("centre", o.centre);
  o.centre_share = section.number("centre_share", o.centre_share,
                                  {.low = 0.0, .high = 1.0, .low_excluded = true, .high_excluded = true});
  o.count_share = section.number("count_share", o.count_share,
                                 {.low = 0.0, .high = 1.0, .low_excluded = true, .high_excluded = true});
  const ReleaseOptions fallback;
  const char* whole = "without mechanism = \"vpp\"";
  section.only_if(o.parted(), "selection", o.selection == fallback.selection, whole);
  section.only_if(o.parted(), "weighting", o.weighting == fallback.weighting, whole);
  section.only_if(o.parted(), "rho", o.rho == fallback.rho, whole);
  section.only_if(o.parted(), "high", o.high == fallback.high, whole);
  section.only_if(o.parted(), "zeta", o.zeta == fallback.zeta, whole);
  section.only_if(o.pays_for_selection(), "split", o.split == fallback.split, "without a selection that is paid for");
  section.only_if(o.centre, "centre_share", o.centre_share == fallback.centre_share, "without centre = true");
  return o;
}

}  // namespace sotto::methods
