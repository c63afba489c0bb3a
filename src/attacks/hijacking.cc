#include "attacks/hijacking.h"

#include "attacks/parts/extractor.h"
#include "attacks/parts/inversion.h"
#include "attacks/parts/measures.h"
#include "attacks/parts/pictures.h"
#include "attacks/parts/prototypes.h"
#include "base/json_number.h"
#include "data/record_ops.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include <limits>
#include <string>

namespace sotto::attacks {
namespace {

using nlohmann::json;

// A feature leaves a picture far more freedom than a gradient does.
constexpr double kHijackVariation = 0.1;

// ∞ if there are too few to have a covariance.
double distance(const Extractor& extractor, const at::Tensor& real, const at::Tensor& made) {
  if (real.size(0) < 2 || made.size(0) < 2) return std::numeric_limits<double>::infinity();
  return frechet_distance(extractor.of(real), extractor.of(made));
}

json run(const Target& target, const AttackOptions& options) {
  const int64_t client = options.client.value_or(0);
  const federation::Setup& setup = target.setup();
  const at::Tensor own =
      inputs_of(data::select_records(setup.dataset().train, setup.partition().shard(client).train.contiguous()));
  std::string compared_by;
  const auto measure = [&](const PrototypeTarget& held, const char* grid) {
    const Extractor extractor =
        extractor_or(options.extractor, {"the features that prototypes are made of", held.features});
    compared_by = extractor.name;
    const Inverted found = hijack_features(*held.encoder, held.table.values, setup.data().task.record_shape,
                                           {.descent = descent_named(options.optimizer),
                                            .steps = options.steps,
                                            .lr = 0.05,
                                            .variation = kHijackVariation,
                                            .seed = options.seed});
    const at::Tensor hit = held.predict(found.x).argmax(1) == held.table.classes;
    json result = {{"cosine", found.cosine},
                   {"top1_hit", hit.to(at::kDouble).mean().item<double>()},
                   {"frechet_distance", number_or_null(distance(extractor, own, found.x))}};
    if (are_pictures(found.x)) {
      write_grid(target.folder() / "attacks" / grid, found.x);
      result["grid"] = grid;
    }
    return result;
  };
  json result = measure(prototypes_of(target, client, options.round, options.threads), "hijacking-grid.png");
  result["client"] = client;
  if (setup.spec().privacy) {
    result["baseline"] = measure(prototypes_without_privacy(target, client, options.round, options.threads),
                                 "hijacking-without-privacy-grid.png");
  }
  result["extractor"] = compared_by;
  return result;
}

}  // namespace

AttackEntry hijacking() {
  return {.name = "hijacking",
          .what = "an input whose feature is an uploaded prototype",
          .citation = "as VPDR attacks with it, after Zhang et al., CVPR 2025",
          .needs = "recorded uploads that hold prototypes",
          .run = run};
}

}  // namespace sotto::attacks
