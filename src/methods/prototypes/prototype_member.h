// A member of the prototype family under its config: a framework, a release and plug-ins.
#pragma once

#include "methods/prototypes/framework.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace sotto::methods {

// Tensors of a broadcast besides the framework's own.
inline constexpr const char* kAnchors = "anchors";
inline constexpr const char* kCentre = "centre";

// What clients' heads look like.
enum class Heads {
  kSame,
  kFour  // HtC4's four in turn
};
constexpr auto choices(Heads) {
  return std::to_array<settings::Choice<Heads>>({{Heads::kSame, "same"}, {Heads::kFour, "four"}});
}

// Sound: what makes the features that prototypes are made of.
enum class EncoderTraining {
  kFrozen,
  kDpSgd,  // trained with noise by every client
  kPublic  // trained on public records
};
constexpr auto choices(EncoderTraining) {
  return std::to_array<settings::Choice<EncoderTraining>>({{EncoderTraining::kFrozen, "frozen"},
                                                           {EncoderTraining::kDpSgd, "dp-sgd"},
                                                           {EncoderTraining::kPublic, "public"}});
}

struct PrototypeOptions {
  ReleaseOptions release;
  int64_t width = 512;
  std::vector<int64_t> head = {512};
  Heads heads = Heads::kSame;
  bool dcr = false;
  double gamma = 0.05;
  double beta = 0.999;
  double tau = 4.0;
  double distill = 0.05;            // λ₁
  bool distill_by_tau = false;      // times τ², which keeps gradients alike whatever the temperature
  bool trained_projection = false;  // the map to the prototypes' space is trained, where one is needed
  int64_t anchors = 2;
  double cluster_rate = 0.1;
  bool shrink = false;
  bool normalise = false;   // features are scaled to length R, wherever they are used
  bool prior = false;       // the head corrects a nearest-prototype classifier
  bool own_centre = false;  // a client's head sees features around the client's own mean
  bool diagnostics = false;
  EncoderTraining encoder = EncoderTraining::kFrozen;
  double encoder_clip = 1.0;
  std::string public_data;
  int64_t public_epochs = 10;
};

PrototypeOptions read_prototype_options(settings::Section& section);

// What a config says of a method of this family.
struct PrototypeChoice {
  PrototypeOptions options;
  std::shared_ptr<const Framework> framework = {};
};

// Options, the framework they belong to, and whether all is as printed.
struct PrototypeMember {
  PrototypeOptions options;
  std::shared_ptr<const Framework> framework;
  bool printed = false;

  bool clusters() const { return framework->local() != LocalPrototypes::kMeans; }

  // Sound cells beyond one per class belong to frameworks that cluster.
  PrototypeShape shape(const PublicContext& context) const {
    return {options.width, context.facts.classes(), clusters() && !printed ? options.anchors : 1};
  }
};

// Checks what a config says of the method.
PrototypeMember member_of(const RunSettings& spec);

std::unique_ptr<PrototypeRelease> release_of(const PublicContext& context, const PrototypeMember& member);

// The directions that a class's records are parted by before there are global prototypes: [anchors, d].
at::Tensor public_directions(const PrototypeShape& shape, uint64_t seed);

}  // namespace sotto::methods
