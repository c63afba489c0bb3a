#include "privacy/neighbours.h"

#include <fmt/format.h>

namespace sotto::privacy {

std::string describe(const Neighbours& neighbours) {
  const std::string one = settings::word(neighbours.unit), all = one + "s";
  switch (neighbours.adjacency) {
    case Adjacency::kAddRemove:
      if (neighbours.unit == Unit::kClient) {
        return "ε bounds how well anybody can tell whether a client takes part at all; how many are enrolled is "
               "public.";
      }
      return fmt::format(
          "ε bounds how well anybody can tell whether a {} is there at all: even how many {} there are is a secret, "
          "which zero-out would tell.",
          one, all);
    case Adjacency::kZeroOut:
      return fmt::format(
          "ε bounds how well anybody can tell whether a {} is blank: how many {} there are, blank ones among them, is "
          "public, which add-remove would keep secret.",
          one, all);
    case Adjacency::kReplace:
      return fmt::format(
          "ε bounds how well anybody can tell a {} from any other in its place: how many {} there are is public.", one,
          all);
    case Adjacency::kReplaceSameLabel:
      return fmt::format(
          "ε bounds how well anybody can tell a {} from another of its class in its place: how many {} each class has "
          "is public.",
          one, all);
  }
  return {};
}

double sum_sensitivity(double bound, Adjacency adjacency) {
  return is_one_sided(adjacency) ? bound : 2 * bound;
}

}  // namespace sotto::privacy
