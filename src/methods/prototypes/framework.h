// A prototype framework: how clients learn from the server's prototypes, and what the server makes of theirs.
//
// The rest is shared: the model, the release, the plug-ins. A new framework is one small file that defines a Framework
// and its catalogue entry.
#pragma once

#include "methods/method.h"
#include "methods/prototypes/prototype_release.h"
#include "methods/prototypes/prototype_set.h"

#include <memory>
#include <string>
#include <vector>

namespace sotto::methods {

// What a client's loss may look at: one mini-batch.
struct LocalBatch {
  at::Tensor features;  // [B, d], soft-clipped if that is on
  at::Tensor logits;    // of these features
  at::Tensor labels;
  at::Tensor source;  // [B, d]: the features that prototypes are made of, without a graph
};

// What a server's generator may look at besides prototypes.
struct GeneratorContext {
  PrototypeShape shape;
  NoiseScale noise;
  double least = 0;  // counts below this are taken for it
  uint64_t seed = 0;
  int64_t round = 0;
};

// How a client's own prototypes come about: a mean per class, or several.
enum class LocalPrototypes { kMeans, kFinch, kKMeans };

class Framework {
 public:
  virtual ~Framework() = default;

  virtual LocalPrototypes local() const { return LocalPrototypes::kMeans; }
  // The head learns from features without sending anything back to the encoder.
  virtual bool head_is_apart() const { return false; }
  // loss() looks at LocalBatch::source.
  virtual bool uses_source() const { return false; }
  // `broadcast` holds what generate() made, or nothing yet.
  virtual at::Tensor loss(const LocalBatch& batch, const NamedTensors& broadcast) const = 0;
  // From the sets of all clients; never called without any. The set called kGlobal is what public selections and
  // anchors are taken from.
  virtual NamedTensors generate(const std::vector<PrototypeSet>& clients, const GeneratorContext& context) const = 0;
  // What that looks like where it made anything: by default the set called kGlobal.
  virtual BroadcastShape generated(const PrototypeShape& shape) const;
};

inline constexpr const char* kGlobal = "prototypes";
// A set of that name in a broadcast, of as many prototypes as there are.
BroadcastShape shape_of_set(const std::string& name, const PrototypeShape& shape, int64_t length = privacy::kAnyLength);

using FrameworkReader = std::unique_ptr<Framework> (*)(settings::Section&);

// A catalogue entry: the framework with releases and plug-ins.
MethodEntry prototype_method(std::string name, std::string what, std::string citation, FrameworkReader read);

// Parts that several servers share.

// Σ n p / Σ n per class, over those who hold it; classes that nobody holds are left out.
PrototypeSet weighted_means(const std::vector<PrototypeSet>& clients, const GeneratorContext& context);
// Every set's prototype of a class counts the same.
PrototypeSet plain_means(const std::vector<PrototypeSet>& clients, const GeneratorContext& context);
// FINCH over all prototypes of a class; the clusters' means.
PrototypeSet finch_per_class(const std::vector<PrototypeSet>& clients, const GeneratorContext& context);

// What the noise has left of them: classes are drawn to the mean of all, and clients' prototypes to their class, by
// (1 - d s²/‖·‖²)₊ each; classes of which nothing is left are dropped. Sees released values alone.
std::vector<PrototypeSet> shrunk(const std::vector<PrototypeSet>& clients, const GeneratorContext& context);

}  // namespace sotto::methods
