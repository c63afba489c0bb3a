#include "attacks/parts/shadows.h"

#include "artifacts/shared_work.h"
#include "base/error.h"
#include "base/files.h"
#include "base/launch.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "base/random.h"
#include "data/record_ops.h"
#include "federation/state_store.h"
#include "io/safetensors.h"
#include "privacy/ledger.h"
#include "transport/simulation.h"

#include <ATen/ATen.h>

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace sotto::attacks {
namespace {

constexpr const char* kLogits = "logits";

// A federation of one client that holds `rows` of the records: the logits of its model for all of them.
at::Tensor train_shadow(const federation::Setup& setup, const data::Records& records, const at::Tensor& rows,
                        uint64_t seed) {
  config::RunSpec spec = setup.spec();
  spec.seed = seed;
  spec.data.clients = 1;
  spec.data.partition = "iid";
  spec.data.train_fraction = 1;
  spec.federation.cohort = 0;
  spec.federation.eval_every = spec.rounds;
  auto data = std::make_shared<models::TaskData>(setup.data());
  data->dataset.train = data::select_records(records, rows);
  data->dataset.test = records;
  const federation::Setup shadow(spec, std::move(data));
  privacy::Ledger ledger;
  const auto states = federation::make_memory_store({});
  transport::Simulation simulation(shadow, *states, ledger);
  while (simulation.next_round()) {
  }
  const auto client = shadow.method().make_client(shadow.client_context());
  client->select(simulation.broadcast(), states->get(0));
  return predict_all(*client, records);
}

std::string fingerprint(const federation::Setup& setup, const data::Records& records, const ShadowOptions& options) {
  const at::Tensor bytes = records.x.contiguous();
  const std::string_view content(static_cast<const char*>(bytes.data_ptr()), bytes.nbytes());
  return sha256(fmt::format("{} {} {} {}", setup.spec().hash(), sha256(content), options.shadows, options.seed));
}

std::optional<Shadows> cached(const ShadowOptions& options, const std::string& key) {
  if (options.cache.empty() || !fs::exists(options.cache)) return std::nullopt;
  const io::SafeTensors file = io::read_safetensors(options.cache);
  const auto found = file.metadata.find("key");
  if (found == file.metadata.end() || found->second != key) return std::nullopt;
  return Shadows{find_tensor(file.tensors, kLogits).clone(), find_tensor(file.tensors, "held").clone()};
}

}  // namespace

Shadows train_shadows(const federation::Setup& setup, const data::Records& records, const ShadowOptions& options) {
  const std::string key = fingerprint(setup, records, options);
  if (auto known = cached(options, key)) return *known;
  const int64_t count = records.size();
  Shadows shadows;
  shadows.held = at::zeros({options.shadows, count}, at::kBool);
  for (int64_t s = 0; s < options.shadows; ++s) {
    RandomStream stream(options.seed, "shadow-records", 0, static_cast<uint64_t>(s));
    shadows.held[s].index_fill_(0, at::tensor(stream.sample_without_replacement(count, count / 2), at::kLong), true);
  }
  Progress progress("shadow models", options.shadows);
  const auto train = [&](int64_t shadow) {
    const at::Tensor rows = shadows.held[shadow].nonzero().squeeze(1).contiguous();
    return train_shadow(setup, records, rows, options.seed * 1000003 + static_cast<uint64_t>(shadow)).to(at::kFloat);
  };
  const fs::path parts = fs::path(options.cache).concat(".parts") / key.substr(0, 16);
  std::vector<at::Tensor> logits(static_cast<size_t>(options.shadows));
  if (options.cache.empty()) {
    parallel_in_order(
        options.shadows, options.threads, [&](int64_t s, int) { logits[static_cast<size_t>(s)] = train(s); },
        [&](int64_t) { progress.advance(); });
  } else {
    const auto results =
        artifacts::share({.folder = parts,
                          .items = options.shadows,
                          .threads = options.threads,
                          .make =
                              [&](int64_t s) {
                                return io::safetensors_bytes({.tensors = {{kLogits, train(s)}}, .metadata = {}});
                              },
                          .done = [&](int64_t) { progress.advance(); },
                          .over = [&] { return cached(options, key).has_value(); }});
    if (results.empty()) return *cached(options, key);
    for (size_t s = 0; s < logits.size(); ++s) {
      logits[s] = find_tensor(io::parse_safetensors(results[s], "a shadow model").tensors, kLogits).clone();
    }
  }
  shadows.logits = at::stack(logits);
  if (!options.cache.empty() && launch().rank == 0) {
    io::SafeTensors file;
    file.tensors.push_back({kLogits, shadows.logits});
    file.tensors.push_back({"held", shadows.held});
    file.metadata["key"] = key;
    io::write_safetensors(options.cache, file);
    std::error_code ignored;
    fs::remove_all(parts, ignored);
    fs::remove(parts.parent_path(), ignored);  // unless there are parts of others, who are at work
  }
  return shadows;
}

}  // namespace sotto::attacks
