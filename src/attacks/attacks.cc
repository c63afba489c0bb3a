#include "attacks/attacks.h"

#include "attacks/parts/extractor.h"
#include "attacks/parts/generator.h"
#include "attacks/parts/inversion.h"
#include "attacks/parts/measures.h"
#include "attacks/parts/membership.h"
#include "attacks/parts/pictures.h"
#include "attacks/parts/prototypes.h"
#include "audit/movement.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json_number.h"
#include "base/text.h"
#include "data/record_ops.h"
#include "methods/parts/local_trainer.h"
#include "models/flat.h"
#include "privacy/ledger.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>

namespace sotto::attacks {
namespace {

using nlohmann::json;

constexpr int64_t kInvertedRecords = 8;
// A feature leaves a picture far more freedom than a gradient does.
constexpr double kHijackVariation = 0.1;

// ---- membership by shadow models ----

enum class ByShadows { kShokri, kLira };

json scored(ByShadows kind, const Shadows& shadows, const at::Tensor& target, const Membership& membership,
            uint64_t seed) {
  if (kind == ByShadows::kLira) return describe(lira_scores(shadows, target, membership.records.y, membership.members));
  const ShadowAttack attack = shadow_scores(shadows, target, membership.records.y, membership.members, seed);
  json result = describe(attack.scores);
  result["success_rate"] = attack.success_rate;
  return result;
}

json by_shadows(ByShadows kind, const Target& target, const AttackOptions& options) {
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
  json result = scored(kind, shadows_of(setup, "shadows.safetensors"), target.logits(membership.records, client),
                       membership, options.seed);
  result["client"] = client ? json(*client) : json(nullptr);
  result["shadows"] = options.shadows;
  if (!setup.spec().privacy) return result;
  const auto plain = without_privacy(setup);
  result["baseline"] = scored(kind, shadows_of(plain, "shadows-without-privacy.safetensors"),
                              predict_all(*model_after_running(plain, client, options.threads), membership.records),
                              membership, options.seed);
  return result;
}

json shadow_membership(const Target& target, const AttackOptions& options) {
  return by_shadows(ByShadows::kShokri, target, options);
}

json lira(const Target& target, const AttackOptions& options) {
  return by_shadows(ByShadows::kLira, target, options);
}

void require_a_model(const federation::Setup& setup) {
  if (!setup.method().uses_model) {
    fail_user("attack: '{}' trains no model that sees records; lira and shadow attack it", setup.spec().method);
  }
}

// ∞ if there are too few to have a covariance.
double distance(const Extractor& extractor, const at::Tensor& real, const at::Tensor& made) {
  if (real.size(0) < 2 || made.size(0) < 2) return std::numeric_limits<double>::infinity();
  return frechet_distance(extractor.of(real), extractor.of(made));
}

// ---- gradient inversion ----

// The model as it was sent out in the first round.
std::shared_ptr<models::Model> first_model(const federation::Setup& setup) {
  auto model = methods::initial_model(setup.public_context());
  const methods::Broadcast broadcast = setup.method().make_server(setup.public_context())->open();
  for (auto& [name, value] : model->shared_parameters()) {
    if (const at::Tensor sent = find_tensor(broadcast.values, name); sent.defined()) value.detach().copy_(sent);
  }
  return model;
}

// Each reconstruction beside the record that it resembles most; a record is used once.
std::vector<int64_t> match(const at::Tensor& reconstructed, const at::Tensor& originals) {
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < reconstructed.size(0); ++i) {
    int64_t best = -1;
    double least = std::numeric_limits<double>::infinity();
    for (int64_t j = 0; j < originals.size(0); ++j) {
      if (std::find(chosen.begin(), chosen.end(), j) != chosen.end()) continue;
      const double error = (reconstructed[i] - originals[j]).square().mean().item<double>();
      if (error < least) {
        least = error;
        best = j;
      }
    }
    chosen.push_back(best);
  }
  return chosen;
}

json invert(const Target& target, const NamedTensors& upload, const data::Shard& shard, const AttackOptions& options,
            const std::string& pictures_named) {
  const federation::Setup& setup = target.setup();
  const auto model = first_model(setup);
  const int64_t steps = setup.spec().federation.local_epochs *
                        ((shard.size() + setup.spec().federation.batch - 1) / setup.spec().federation.batch);
  const at::Tensor gradient = audit::movement(upload, model->shared_parameters()) /
                              (-setup.spec().federation.lr * static_cast<double>(std::max<int64_t>(steps, 1)));
  data::Batch truth;
  data::gather(setup.dataset().train, shard.train.contiguous(), truth);
  const int64_t count = std::min(shard.size(), kInvertedRecords);
  const bool pictures = are_pictures(truth.x);
  const Inverted found = invert_gradient(*model, gradient, count, truth.x.sizes().slice(1).vec(),
                                         {.descent = descent_named(options.optimizer),
                                          .steps = options.steps,
                                          .variation = pictures ? 1e-3 : 0,
                                          .seed = options.seed});
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < shard.size(); ++i) labels.push_back(truth.y[i].item<int64_t>());
  int64_t right = 0;
  for (const int64_t label : found.labels) {
    const auto place = std::find(labels.begin(), labels.end(), label);
    if (place == labels.end()) continue;
    labels.erase(place);
    ++right;
  }
  double total_psnr = 0, total_ssim = 0;
  json reconstructions = json::array();
  const std::vector<int64_t> matched = match(found.x, truth.x);
  for (int64_t i = 0; i < count; ++i) {
    const at::Tensor original = truth.x[matched[static_cast<size_t>(i)]];
    total_psnr += std::min(psnr(original, found.x[i]), 100.0);
    if (!pictures) continue;
    total_ssim += ssim(original, found.x[i]);
    const fs::path folder = target.folder() / "attacks";
    const auto name = [&](const char* which) { return fmt::format("{}-{}-{}", pictures_named, i, which); };
    reconstructions.push_back({{"client", options.client.value_or(0)},
                               {"psnr", number_or_null(psnr(original, found.x[i]))},
                               {"ssim", ssim(original, found.x[i])},
                               {"original", write_picture(folder, name("original"), original.unsqueeze(0))},
                               {"reconstructed", write_picture(folder, name("found"), found.x[i].unsqueeze(0))}});
  }
  json result = {{"psnr", total_psnr / static_cast<double>(count)},
                 {"labels_right", static_cast<double>(right) / static_cast<double>(count)},
                 {"cosine", found.cosine},
                 {"records", count},
                 {"records_of_client", shard.size()},
                 {"steps_of_client", steps}};
  if (pictures) {
    result["ssim"] = total_ssim / static_cast<double>(count);
    result["reconstructions"] = std::move(reconstructions);
  }
  return result;
}

json gradient_inversion(const Target& target, const AttackOptions& options) {
  const federation::Setup& setup = target.setup();
  require_a_model(setup);
  if (options.round > 1) fail_user("--round {}: only the model that round 1 started from is known", options.round);
  const int64_t client = options.client.value_or(0);
  const data::Shard shard = setup.partition().shard(client);
  json result = invert(target, target.upload(1, client), shard, options, "gradient-inversion");
  result["client"] = client;
  if (!setup.spec().privacy) return result;
  const auto plain = without_privacy(setup);
  privacy::Ledger ledger;
  privacy::PrivateState state;
  const auto method = plain.method().make_client(plain.client_context());
  const auto upload = method->step(plain.method().make_server(plain.public_context())->open(), shard, state,
                                   {setup.spec().seed, {.ledger = ledger, .round = 1, .client = client}});
  if (!upload.upload) fail_user("attack: without privacy client {} diverges in round 1", client);
  result["baseline"] = invert(target, upload.upload->values(), shard, options, "gradient-inversion-without-privacy");
  result["baseline"].erase("reconstructions");
  return result;
}

// ---- prototypes ----

json prototype_membership(const Target& target, const AttackOptions& options) {
  const int64_t client = options.client.value_or(0);
  const federation::Setup& setup = target.setup();
  const Membership membership = members_and_others(setup, client, options.records, options.seed);
  const auto measure = [&](const PrototypeTarget& held) {
    const at::Tensor features = held.features(inputs_of(membership.records));
    const at::Tensor scores = prototype_scores(features, membership.records.y, held.table);
    return describe(by_membership(scores, membership.members));
  };
  json result = measure(prototypes_of(target, client, options.round));
  result["client"] = client;
  if (setup.spec().privacy) {
    result["baseline"] = measure(prototypes_without_privacy(target, client, options.round, options.threads));
  }
  return result;
}

json hijacking(const Target& target, const AttackOptions& options) {
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
  json result = measure(prototypes_of(target, client, options.round), "hijacking-grid.png");
  result["client"] = client;
  if (setup.spec().privacy) {
    result["baseline"] = measure(prototypes_without_privacy(target, client, options.round, options.threads),
                                 "hijacking-without-privacy-grid.png");
  }
  result["extractor"] = compared_by;
  return result;
}

// ---- GAN reconstruction ----

std::shared_ptr<models::Model> model_with(const federation::Setup& setup, const NamedTensors& weights) {
  auto model = methods::initial_model(setup.public_context());
  for (auto& [name, value] : model->state()) {
    if (const at::Tensor known = find_tensor(weights, name); known.defined()) value.detach().copy_(known);
  }
  return model;
}

// The curious client is the last one: under private-label partitions it lacks a class.
json gan(const Target& target, const AttackOptions& options) {
  const federation::Setup& setup = target.setup();
  require_a_model(setup);
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
    const GanOptions settings{.steps = options.steps, .seed = options.seed};
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

const std::vector<AttackEntry>& attack_list() {
  static const std::vector<AttackEntry> entries = {
      {"lira", "whether a record was trained on, by likelihood ratios of shadow models", lira},
      {"shadow", "whether a record was trained on, by networks that watched shadow models", shadow_membership},
      {"gradient-inversion", "the records behind a client's first upload", gradient_inversion},
      {"prototype-membership", "whether a record is in a class's prototype", prototype_membership},
      {"hijacking", "an input whose feature is an uploaded prototype", hijacking},
      {"gan", "what each class looks like, by a generator that the global model judges", gan},
  };
  return entries;
}

const AttackEntry& find_attack(const std::string& name) {
  std::vector<std::string> names;
  for (const AttackEntry& entry : attack_list()) {
    if (entry.name == name) return entry;
    names.push_back(entry.name);
  }
  fail_user("no attack is called '{}'{}; there are {}", name, did_you_mean(name, names), join(names, ", "));
}

json attack(const Target& target, const std::string& name, const AttackOptions& options) {
  const AttackEntry& entry = find_attack(name);
  const int64_t clients = target.setup().spec().data.clients;
  if (options.client && (*options.client < 0 || *options.client >= clients)) {
    fail_user("--client {}: there are clients 0 to {}", *options.client, clients - 1);
  }
  const fs::path folder = target.folder() / "attacks";
  make_folder(folder);
  json result = entry.run(target, options);
  result["name"] = entry.name;
  result["what"] = entry.what;
  write_file_atomically(folder / (entry.name + ".json"), result.dump(2) + "\n");
  return result;
}

}  // namespace sotto::attacks
