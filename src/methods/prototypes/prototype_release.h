// What a client sends of its prototypes, and what that costs.
//
//   sum_release.cc    sound: sums and counts of all classes (or cells of classes) with noise, from features that no
//                     private training has touched
//   mean_release.cc   as printed: means of the classes that the client holds, noise divided by their sizes; and means
//                     in the clear
#pragma once

#include "methods/method.h"
#include "methods/prototypes/dimension_groups.h"
#include "methods/prototypes/prototype_set.h"
#include "methods/prototypes/release_prices.h"

#include <memory>

namespace sotto::methods {

// Standard deviations of one client's noise: in each coordinate of a sum, and in a count.
struct NoiseScale {
  double sum = 0;
  double count = 0;
};

class PrototypeRelease {
 public:
  virtual ~PrototypeRelease() = default;
  PrototypeRelease(const PrototypeRelease&) = delete;
  PrototypeRelease& operator=(const PrototypeRelease&) = delete;

  const ReleaseOptions& options() const { return options_; }
  const ReleasePrices& prices() const { return prices_; }
  virtual ReleasePlan plan(const ClientFacts& client) const = 0;

  struct Result {
    privacy::Upload upload;
    double noise_norm = 0;  // expected
    at::Tensor dimensions;  // group A, int64; undefined if there is none
  };
  // Pays, then computes. `global` is what the server has sent; `remembered` are the dimensions of an earlier release
  // of this client. BudgetSpent if the client cannot afford it.
  virtual Result release(const LabelledFeatures& records, const PrototypeSet& global, const at::Tensor& remembered,
                         const ClientFacts& client, const privacy::ReleaseContext& context) const = 0;
  // The same for the sum of all records, where options().centre asks for it.
  virtual Result release_centre(const at::Tensor& features, const ClientFacts& client,
                                const privacy::ReleaseContext& context) const = 0;

  // What a client sends in answer to a broadcast.
  virtual privacy::UploadShape upload_shape(const Broadcast& broadcast) const = 0;

  // Of the client with the least budget; zeros if there is no noise or none that the server knows of.
  virtual NoiseScale noise_scale() const { return {}; }
  virtual NoiseScale centre_noise_scale() const { return {}; }

 protected:
  PrototypeRelease(const PublicContext& context, const ReleaseOptions& options, const PrototypeShape& shape);

  const ReleaseOptions options_;
  const PrototypeShape shape_;
  const ReleasePrices prices_;
  const DimensionChooser dimensions_;
};

// As the config says. `clusters`: a client has several prototypes of a class. A UserError for options that cannot be
// kept.
std::unique_ptr<PrototypeRelease> make_prototype_release(const PublicContext& context, const ReleaseOptions& options,
                                                         const PrototypeShape& shape, bool clusters);
std::unique_ptr<PrototypeRelease> make_sum_release(const PublicContext& context, const ReleaseOptions& options,
                                                   const PrototypeShape& shape);
std::unique_ptr<PrototypeRelease> make_mean_release(const PublicContext& context, const ReleaseOptions& options,
                                                    const PrototypeShape& shape, bool clusters);
std::unique_ptr<PrototypeRelease> make_clear_release(const PublicContext& context, const ReleaseOptions& options,
                                                     const PrototypeShape& shape, bool clusters);

// Adds a channel to a plan: a client that takes part in fewer rounds than it may release in makes fewer releases.
void plan_channel(ReleasePlan& plan, privacy::Channel channel, const ClientFacts& client,
                  const privacy::NoiseReach& reach = {});

// Names of tensors and releases.
inline constexpr const char* kPrototypesName = "prototypes";
inline constexpr const char* kSumsName = "sums";
inline constexpr const char* kCountsName = "counts";
inline constexpr const char* kClassesName = "classes";
inline constexpr const char* kCentreName = "centre";

// What the server got: sound uploads hold `sums` and `counts`, others `prototypes` (rows of zeros where a class is not
// held), `classes` if they are clusters, and `records`. Sums are divided by their counts, or by `least` if that is more.
PrototypeSet prototypes_of(const NamedTensors& upload, const PrototypeShape& shape, double least);
// The upload of release_centre, if it is one.
struct CentreSums {
  at::Tensor sum;  // [d]; undefined if it is not
  double count = 0;
};
CentreSums centre_of(const NamedTensors& upload);

}  // namespace sotto::methods
