// What private methods ask of a config and a model.
#pragma once

#include "methods/run_settings.h"
#include "models/model.h"

namespace sotto::methods {

// The [privacy] section, whose unit must be `unit`; a UserError that says what to write otherwise.
const privacy::PrivacyTerms& require_privacy(const RunSettings& spec, privacy::Unit unit);

// A model that keeps statistics of its batches (BatchNorm in training) would leak them: a UserError with a hint.
// So may any model whose layers are not known.
void require_no_batch_statistics(const models::Model& model);
// The same, and no dropout: what is computed for a record must not depend on which others are there.
void require_separate_records(const models::Model& model);

}  // namespace sotto::methods
