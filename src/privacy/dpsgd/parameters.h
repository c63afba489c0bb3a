// The parameters a clipper is about: where their gradients go, and who bounds them.
#pragma once

#include "privacy/dpsgd/chunk.h"
#include "privacy/dpsgd/clipper.h"

#include <string>
#include <vector>

namespace sotto::privacy {

struct NamedParameter {
  std::string name;
  Parameter parameter;
};

// UserErrors: a group that names no parameter, a parameter in no group or in two, no group and no parameter.
std::vector<NamedParameter> clipped_parameters(const models::Model& model, const models::FlatParameters& flat,
                                               const ClipOptions& options);

// One per group; UserErrors for what is not positive and finite.
std::vector<double> clip_bounds(const ClipOptions& options);
void check_bounds(const std::vector<double>& bounds);

}  // namespace sotto::privacy
