#include "attacks/hijacking.h"

#include "attacks/parts/extractor.h"
#include "attacks/parts/inversion.h"
#include "attacks/parts/measures.h"
#include "attacks/parts/pictures.h"
#include "attacks/parts/prototypes.h"
#include "base/error.h"
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
constexpr double kHijackVariation = 0.1, kHijackRate = 0.05;
// VPDR, section E.6.1.
constexpr double kPrintedVariation = 1e-3, kPrintedRate = 0.01;

InversionOptions inversion_of(const AttackOptions& options) {
  if (options.as_printed && options.optimizer != "adam") fail_user("--as-printed: the paper's descent is adam's");
  return {.descent = descent_named(options.optimizer),
          .steps = options.most_steps(),
          .lr = options.as_printed ? kPrintedRate : kHijackRate,
          .variation = options.as_printed ? kPrintedVariation : kHijackVariation,
          .seed = options.seed,
          .as_printed = options.as_printed};
}

// Which pictures are taken for what they were made of: by the client's own model, or as printed by the prototype that is
// nearest to their features.
at::Tensor hits(const PrototypeTarget& held, const at::Tensor& x, bool as_printed) {
  if (!as_printed) return held.predict(x).argmax(1) == held.table.classes;
  const at::Tensor nearest = at::cdist(held.features(x), held.table.values).argmin(1);
  return held.table.classes.index_select(0, nearest) == held.table.classes;
}

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
    const Inverted found =
        hijack_features(*held.encoder, held.table.values, setup.data().task.record_shape, inversion_of(options));
    const at::Tensor hit = hits(held, found.x, options.as_printed);
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
  if (options.as_printed) result["as_printed"] = true;
  return result;
}

}  // namespace

AttackEntry hijacking() {
  return {.name = "hijacking",
          .what = "an input whose feature is an uploaded prototype",
          .citation = "as VPDR attacks with it, after Zhang et al., CVPR 2025",
          .needs = "recorded uploads that hold prototypes",
          .is_printed = true,
          .run = run};
}

}  // namespace sotto::attacks
