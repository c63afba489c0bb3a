#include "attacks/gradient_inversion.h"

#include "attacks/parts/inversion.h"
#include "attacks/parts/measures.h"
#include "attacks/parts/pictures.h"
#include "audit/movement.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json_number.h"
#include "data/record_ops.h"
#include "methods/parts/local_trainer.h"
#include "privacy/ledger.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sotto::attacks {
namespace {

using nlohmann::json;

constexpr int64_t kInvertedRecords = 8;

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
                                          .steps = options.most_steps(),
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

json run(const Target& target, const AttackOptions& options) {
  const federation::Setup& setup = target.setup();
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

}  // namespace

AttackEntry gradient_inversion() {
  return {.name = "gradient-inversion",
          .what = "the records behind a client's first upload",
          .citation = "Zhu et al., NeurIPS 2019; Geiping et al., NeurIPS 2020",
          .needs = "recorded uploads of round 1",
          .needs_model = true,
          .run = run};
}

}  // namespace sotto::attacks
