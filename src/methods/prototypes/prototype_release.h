// How prototypes leave a client.
//
// mechanism = "igpp": isotropic noise. "vpp": the dimensions are parted into a group A that should carry the classes
// and a rest B, each bounded and noised by itself. "none": in the clear. "local": not at all; every client trains
// alone.
//
// Sound: sums and counts of all classes (or cells of classes) with noise, from features that no private training has
// touched. Paper: means of the classes that the client holds, noise divided by their sizes.
#pragma once

#include "methods/method.h"
#include "methods/prototypes/prototype_set.h"
#include "privacy/bounded.h"
#include "privacy/mechanisms/gaussian.h"

#include <optional>
#include <string>

namespace sotto::methods {

struct ReleaseOptions {
  std::string mechanism = "igpp";   // local, none, igpp, vpp
  std::string selection = "paper";  // vpp: paper, once, free, random, oracle
  std::string weighting = "paper";  // vpp: paper, best, even
  bool once = false;                // one release with the whole budget, not one in every round
  double radius = 10;               // R
  double rho = 0.2;                 // share of the dimensions in group A
  double split = 0.1;               // r: share of ε for private selections
  double high = 0.1;                // H: scores are cut to [0, H]
  double zeta = 1e-8;
  double count_share = 0.1;   // adjacency add-remove: what counting costs of 1/z²
  bool centre = false;        // sound: the first release is the mean of all records, which later ones are freed of
  double centre_share = 0.1;  // what that costs of 1/z²
  double encoder_share = 0;   // sound: what noisy training of the encoder costs of 1/z²

  bool silent() const { return mechanism == "local"; }
  bool noisy() const { return mechanism == "igpp" || mechanism == "vpp"; }
  bool parted() const { return mechanism == "vpp"; }
  // Whether the selection is paid for out of the client's ε.
  bool pays_for_selection() const { return parted() && (selection == "paper" || selection == "once"); }
};

ReleaseOptions read_release_options(settings::Section& section);

// What prototypes are made of.
struct PrototypeShape {
  int64_t width = 0;    // d
  int64_t classes = 0;  // C
  int64_t anchors = 1;  // sound: cells per class

  int64_t cells() const { return classes * anchors; }
};

// One client's records in the space of the prototypes. Private.
struct LabelledFeatures {
  at::Tensor values;  // float [n, d]
  at::Tensor labels;  // int64 [n]
  at::Tensor cells;   // int64 [n]: sound, the record's cell; paper, its cluster among all of the client's
};

// Standard deviations of one client's noise: in each coordinate of a sum, and in a count.
struct NoiseScale {
  double sum = 0;
  double count = 0;
};

class PrototypeRelease {
 public:
  // A UserError for options that cannot be kept.
  PrototypeRelease(const PublicContext& context, const ReleaseOptions& options, const PrototypeShape& shape,
                   bool clusters);

  const ReleaseOptions& options() const { return options_; }
  ReleasePlan plan(const ClientFacts& client) const;

  struct Result {
    privacy::Upload upload;
    double noise_norm = 0;  // expected
    at::Tensor dimensions;  // group A, int64; undefined if there is none
  };
  // Pays, then computes. `global` is what the server has sent; `remembered` are the dimensions of an earlier release
  // of this client. BudgetSpent if the client cannot afford it.
  Result release(const LabelledFeatures& records, const PrototypeSet& global, const at::Tensor& remembered,
                 const ClientFacts& client, const privacy::ReleaseContext& context) const;

  // The same for the sum of all records.
  Result release_centre(const at::Tensor& features, const ClientFacts& client,
                        const privacy::ReleaseContext& context) const;

  // What a client sends in answer to a broadcast.
  privacy::UploadShape upload_shape(const Broadcast& broadcast) const;

  // How many releases a client makes in the whole run.
  int64_t releases(const ClientFacts& client) const;
  std::string how_often() const;
  // The multiplier of each of `touches` steps per release with which the encoder may be trained.
  double encoder_multiplier(const ClientFacts& client, int64_t touches) const;

  // Of the client with the least budget; zeros if there is no noise or none that the server knows of.
  NoiseScale noise_scale() const;
  NoiseScale centre_noise_scale() const;

 private:
  struct Parts {
    at::Tensor first;   // group A; undefined if there is one group only
    double weight = 1;  // ω of A
  };
  int64_t first_width() const;
  int64_t selections(const ClientFacts& client) const;
  double selection_epsilon(const ClientFacts& client) const;
  double multiplier(const ClientFacts& client) const;
  double centre_multiplier(const ClientFacts& client) const;
  double epsilon_for_values(const ClientFacts& client) const;
  privacy::CellRule centre_rule() const;
  ClientFacts least_budget() const;
  double paper_weight() const;
  Parts part(const LabelledFeatures& records, const PrototypeSet& global, const at::Tensor& remembered,
             const ClientFacts& client, const privacy::ReleaseContext& context) const;
  at::Tensor select_privately(const LabelledFeatures& records, const ClientFacts& client,
                              const privacy::ReleaseContext& context) const;
  privacy::CellRule rule(const Parts& parts) const;
  Result release_sums(const LabelledFeatures& records, const Parts& parts, const ClientFacts& client,
                      const privacy::ReleaseContext& context) const;
  Result release_means(const LabelledFeatures& records, const Parts& parts, const ClientFacts& client,
                       const privacy::ReleaseContext& context) const;
  std::string why_unproven() const;
  privacy::Channel clear_channel(const ClientFacts& client) const;
  privacy::Channel oracle_channel(const ClientFacts& client) const;
  privacy::Channel selection_channel(const ClientFacts& client) const;
  privacy::Channel sums_channel(const privacy::GroupwiseGaussian& mechanism, const ClientFacts& client) const;
  privacy::Channel means_channel(const privacy::GroupwiseGaussian& mechanism, const ClientFacts& client) const;
  privacy::Channel centre_channel(const ClientFacts& client) const;

  const RunSettings& spec_;
  ReleaseOptions options_;
  PrototypeShape shape_;
  bool clusters_;
  bool printed_;
  int64_t most_participations_ = 1;
};

// What the server got: sound uploads hold `sums` and `counts`, others `prototypes` (rows of zeros where a class is not
// held), `classes` if they are clusters, and `records`. Sums are divided by their counts, or by `least` if that is
// more.
PrototypeSet prototypes_of(const NamedTensors& upload, const PrototypeShape& shape, double least);
// The upload of release_centre, if it is one.
struct CentreSums {
  at::Tensor sum;  // [d]; undefined if it is not
  double count = 0;
};
CentreSums centre_of(const NamedTensors& upload);

}  // namespace sotto::methods
