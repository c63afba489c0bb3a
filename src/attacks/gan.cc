#include "attacks/gan.h"

#include "attacks/parts/extractor.h"
#include "attacks/parts/generator.h"
#include "attacks/parts/measures.h"
#include "attacks/parts/pictures.h"
#include "base/error.h"
#include "data/record_ops.h"
#include "methods/parts/local_trainer.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include <memory>
#include <optional>

namespace sotto::attacks {
namespace {

using nlohmann::json;

std::shared_ptr<models::Model> model_with(const federation::Setup& setup, const NamedTensors& weights) {
  auto model = methods::initial_model(setup.public_context());
  for (auto& [name, value] : model->state()) {
    if (const at::Tensor known = find_tensor(weights, name); known.defined()) value.detach().copy_(known);
  }
  return model;
}

json run(const Target& target, const AttackOptions& options) {
  const federation::Setup& setup = target.setup();
  const int64_t client = options.client.value_or(setup.spec().data.clients - 1);
  const int64_t classes = setup.data().task.classes;
  data::Batch own;
  data::gather(setup.dataset().train, setup.partition().shard(client).train.contiguous(), own);
  if (own.x.size(0) == 0) fail_user("attack: client {} holds no records to train a generator with", client);
  const auto plain = without_privacy(setup);
  const auto clear = model_with(setup, model_after_running(plain, std::nullopt, options.threads)->selected_weights());
  clear->eval();
  const Extractor extractor =
      extractor_or(options.extractor, {"the model of the same federation without privacy", [&](const at::Tensor& x) {
                                         const at::NoGradGuard no_gradient;
                                         return clear->features(x);
                                       }});
  const Membership known = members_and_others(setup, std::nullopt, options.records, options.seed);
  const at::Tensor real = extractor.of(inputs_of(known.records));
  const auto measure = [&](const NamedTensors& weights, const char* grid) {
    const GanOptions settings{.steps = options.most_steps(), .seed = options.seed};
    const at::Tensor made = generate_by_class(*model_with(setup, weights), own.x, own.y, classes, settings);
    const at::Tensor features = extractor.of(made);
    json per_class = json::array();
    double total = 0, counted = 0;
    for (int64_t label = 0; label < classes; ++label) {
      const at::Tensor rows = (known.records.y == label).nonzero().squeeze(1);
      if (rows.size(0) < 2) {
        per_class.push_back(nullptr);
        continue;
      }
      const double distance =
          frechet_distance(real.index_select(0, rows), features.narrow(0, label * settings.each, settings.each));
      per_class.push_back(distance);
      total += distance;
      ++counted;
    }
    json result = {{"frechet_distance", counted > 0 ? json(total / counted) : json(nullptr)},
                   {"frechet_distance_per_class", per_class}};
    if (are_pictures(made)) {
      write_grid(target.folder() / "attacks" / grid,
                 made.index_select(0, at::arange(classes, at::kLong) * settings.each));
      result["grid"] = grid;
    }
    return result;
  };
  json result = measure(target.weights(), "gan-grid.png");
  result["client"] = client;
  result["extractor"] = extractor.name;
  result["baseline"] = measure(clear->state(), "gan-without-privacy-grid.png");
  return result;
}

}  // namespace

AttackEntry gan() {
  return {.name = "gan",
          .what = "what each class looks like, by a generator that the global model judges",
          .citation = "Hitaj et al., CCS 2017",
          .needs = "the last global model, and a curious client's own records",
          .needs_model = true,
          .run = run};
}

}  // namespace sotto::attacks
