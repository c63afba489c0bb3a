#include "methods/parts/requirements.h"

#include "base/error.h"
#include "models/layers.h"

namespace sotto::methods {

const config::PrivacyOptions& require_privacy(const config::RunSpec& spec, const std::string& unit) {
  if (!spec.privacy) {
    fail_user("method {} needs a [privacy] section: epsilon, delta, adjacency and unit = \"{}\"", spec.method, unit);
  }
  if (spec.privacy->unit != unit) {
    fail_user("method {} protects a {}, not a {}: set privacy.unit = \"{}\"", spec.method, unit, spec.privacy->unit,
              unit);
  }
  return *spec.privacy;
}

void require_no_batch_statistics(const models::Model& model) {
  for (const auto& module : model.modules()) {
    const auto* layer = dynamic_cast<const models::BatchNorm2d*>(module.get());
    if (layer != nullptr && layer->weight.requires_grad()) {
      fail_user(
          "BatchNorm mixes the records of a batch and keeps their statistics: set model.norm = \"group\", or "
          "freeze the backbone");
    }
  }
}

}  // namespace sotto::methods
