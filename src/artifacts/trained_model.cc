#include "artifacts/trained_model.h"

#include "artifacts/run_directory.h"
#include "base/error.h"
#include "federation/state_store.h"
#include "methods/catalogue.h"

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
  const auto store = setup.spec().federation.state == methods::StateStorage::kDisk
                         ? federation::make_disk_store(folder / "state")
                         : federation::make_memory_store(folder / "state");
  store->restore(round);
  return store->get(client);
}

}  // namespace

TrainedModel::TrainedModel(const std::filesystem::path& run_folder, std::optional<int64_t> client)
    : TrainedModel(run_folder, spec_of(RunReader(run_folder), client), client) {}

TrainedModel::TrainedModel(const std::filesystem::path& run_folder, const config::RunSpec& spec,
                           std::optional<int64_t> client)
    : setup_(spec), method_(setup_.method().make_client(setup_.client_context())), client_(client) {
  const auto checkpoint = RunReader(run_folder).last_checkpoint(spec.hash());
  if (!checkpoint) fail_user("{} has no checkpoint yet; run it first", run_folder.string());
  round_ = checkpoint->round;
  method_->select(checkpoint->broadcast,
                  client ? state_of(setup_, run_folder, checkpoint->round, *client) : privacy::PrivateState());
}

std::string TrainedModel::why_not_private() const {
  if (!client_ || !setup_.method().fits_without_noise(setup_.spec())) return "";
  return fmt::format(
      "the model of client {} is not private: it was fitted to the client's records without noise and must not leave "
      "it",
      *client_);
}

}  // namespace sotto::artifacts
