#include "attacks/parts/membership.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>

namespace sotto::attacks {

using nlohmann::json;

json ask_shadows(const Target& target, const AttackOptions& options, const ShadowMeasure& measure) {
  const federation::Setup& setup = target.setup();
  std::optional<int64_t> client = options.client;
  if (!client && !setup.method().global(setup.spec())) client = 0;
  const Membership membership = members_and_others(setup, client, options.records, options.seed);
  const auto shadows_of = [&](const federation::Setup& trained_as, const char* file) {
    return train_shadows(trained_as, membership.records,
                         {.shadows = options.shadows,
                          .seed = options.seed,
                          .threads = options.threads,
                          .cache = target.folder() / "attacks" / file});
  };
  json result =
      measure(shadows_of(setup, "shadows.safetensors"), target.logits(membership.records, client), membership);
  result["client"] = client ? json(*client) : json(nullptr);
  result["shadows"] = options.shadows;
  if (!setup.spec().privacy) return result;
  const auto plain = without_privacy(setup);
  result["baseline"] =
      measure(shadows_of(plain, "shadows-without-privacy.safetensors"),
              predict_all(*model_after_running(plain, client, options.threads), membership.records), membership);
  return result;
}

}  // namespace sotto::attacks
