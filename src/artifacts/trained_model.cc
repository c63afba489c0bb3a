#include "artifacts/trained_model.h"

#include "artifacts/run_directory.h"
#include "base/error.h"
#include "federation/state_store.h"
#include "methods/catalogue.h"
#include "models/lora.h"

#include <fmt/format.h>

#include <utility>
namespace sotto::artifacts {
namespace {

// The run's settings, if it has a model of this client (or a global one).
config::RunSpec spec_of(const RunReader& reader, std::optional<int64_t> client) {
  const config::RunSpec spec = reader.spec();
  if (client && (*client < 0 || *client >= spec.data.clients)) {
    fail_user("there is no client {}: {} has clients 0 to {}", *client, reader.folder().string(),
              spec.data.clients - 1);
  }
  if (!client && !methods::find_method(spec.method).global(spec)) {
    fail_user("{} has no global model; name a client with --client 0 … {}", spec.method, spec.data.clients - 1);
  }
  return spec;
}

privacy::PrivateState state_of(const federation::Setup& setup, const std::filesystem::path& folder, int64_t round,
                               int64_t client) {
  const auto states = state_folder(folder);
  if (setup.method().personal(setup.spec()) && federation::states_were_discarded(states)) {
    fail_user(
        "{} keeps no clients' states (record.keep_states = \"none\", or sotto prune), so that the models of its "
        "clients "
        "are gone; run it again with another --out",
        folder.string());
  }
  const auto store = setup.spec().federation.state == methods::StateStorage::kDisk
                         ? federation::make_disk_store(states)
                         : federation::make_memory_store(states);
  store->restore(round);
  return store->get(client);
}

}  // namespace

TrainedModel::TrainedModel(const std::filesystem::path& run_folder, std::optional<int64_t> client)
    : TrainedModel(run_folder, spec_of(RunReader(run_folder), client), client) {}

TrainedModel::TrainedModel(const std::filesystem::path& run_folder, const config::RunSpec& spec,
                           std::optional<int64_t> client)
    : setup_(spec),
      method_(setup_.method().make_client(setup_.client_context())),
      client_(client),
      name_(client ? fmt::format("client {}", *client) : "") {
  const auto checkpoint = RunReader(run_folder).last_checkpoint(spec);
  if (!checkpoint) fail_user("{} has no checkpoint yet; run it first", run_folder.string());
  round_ = checkpoint->round;
  method_->select(checkpoint->broadcast,
                  client ? state_of(setup_, run_folder, checkpoint->round, *client) : privacy::PrivateState());
}

TrainedModel::TrainedModel(federation::Setup setup, const methods::Broadcast& broadcast,
                           const privacy::PrivateState& state, std::optional<int64_t> client, std::string name,
                           int64_t round)
    : setup_(std::move(setup)),
      method_(setup_.method().make_client(setup_.client_context())),
      client_(client),
      name_(std::move(name)),
      round_(round) {
  method_->select(broadcast, state);
}

NamedTensors TrainedModel::weights() const {
  const NamedTensors weights = method_->selected_weights();
  return setup_.spec().model.lora.rank > 0 ? models::merge_lora(weights) : weights;
}

std::string TrainedModel::why_not_private() const {
  if (!client_ || !setup_.method().fits_without_noise(setup_.spec())) return "";
  return fmt::format(
      "the model of {} is not private: it was fitted to the client's records without noise and must not leave it",
      name_);
}

}  // namespace sotto::artifacts
