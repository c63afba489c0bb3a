#include "methods/parts/requirements.h"

#include "base/error.h"
#include "models/layers.h"
#include "models/script/opaque.h"

namespace sotto::methods {

const privacy::PrivacyTerms& require_privacy(const RunSettings& spec, privacy::Unit unit) {
  const std::string wanted = settings::word(unit);
  if (!spec.privacy) {
    fail_user("method {} needs a [privacy] section: epsilon, delta, adjacency and unit = \"{}\"", spec.method, wanted);
  }
  if (spec.privacy->unit != unit) {
    fail_user("method {} protects a {}, not a {}: set privacy.unit = \"{}\"", spec.method, wanted,
              settings::word(spec.privacy->unit), wanted);
  }
  return *spec.privacy;
}

void require_no_batch_statistics(const models::Model& model) {
  if (const auto* opaque = dynamic_cast<const models::OpaqueModel*>(&model)) fail_user("{}", opaque->why());
  for (const auto& module : model.modules()) {
    const auto* layer = dynamic_cast<const models::BatchNorm2d*>(module.get());
    if (layer != nullptr && layer->weight.requires_grad()) {
      fail_user(
          "BatchNorm mixes the records of a batch and keeps their statistics: set model.norm = \"group\", or "
          "freeze the backbone");
    }
  }
}

void require_separate_records(const models::Model& model) {
  require_no_batch_statistics(model);
  for (const auto& module : model.modules()) {
    const auto* dropout = dynamic_cast<const models::Dropout*>(module.get());
    if (dropout != nullptr && dropout->probability() > 0) {
      fail_user(
          "model.dropout: its masks follow the order of records, so that one record less changes everybody's; with "
          "noise on each record's gradient set it to 0");
    }
  }
}

}  // namespace sotto::methods
