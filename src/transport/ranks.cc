#include "transport/ranks.h"

#include "base/error.h"
#include "base/files.h"
#include "base/launch.h"

#include <dlfcn.h>

#include <utility>

namespace sotto::transport {
namespace {

constexpr const char* kModule = "libsotto_mpi.so";

// Kept to the end of the process, for abandon_ranks.
std::shared_ptr<Ranks>& opened() {
  static std::shared_ptr<Ranks> ranks;
  return ranks;
}

// What MPI does not survive is not tried twice: once finished, it is finished.
class Finishing : public Ranks {
 public:
  explicit Finishing(std::unique_ptr<Ranks> inner) : inner_(std::move(inner)) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  void broadcast(std::string& bytes) override { inner_->broadcast(bytes); }
  void send(int to, const std::string& bytes) override { inner_->send(to, bytes); }
  std::string receive(int from) override { return inner_->receive(from); }
  double seconds_moving() const override { return inner_->seconds_moving(); }
  void finish() override {
    if (!std::exchange(over_, true)) inner_->finish();
  }
  void abort(int exit_code) override {
    if (!over_ && size() > 1) inner_->abort(exit_code);
  }

 private:
  std::unique_ptr<Ranks> inner_;
  bool over_ = false;
};

}  // namespace

std::shared_ptr<Ranks> open_ranks() {
  if (launch().size == 1) return nullptr;
  const fs::path module = fs::read_symlink("/proc/self/exe").parent_path() / kModule;
  if (!fs::exists(module)) {
    fail_user(
        "mpirun started several ranks, and this sotto was built without MPI: install libopenmpi-dev and build it "
        "again");
  }
  // Open MPI's own plug-ins look for its symbols among the global ones.
  void* library = ::dlopen(module.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) fail_user("cannot load {}: {}", module.string(), ::dlerror());
  using Open = Ranks* (*)();
  const auto open = reinterpret_cast<Open>(::dlsym(library, "sotto_open_mpi"));
  if (open == nullptr) fail_user("{} is not of this version of sotto; build it again", module.string());
  opened() = std::make_shared<Finishing>(std::unique_ptr<Ranks>(open()));
  if (opened()->size() > 1) return opened();
  opened()->finish();
  return nullptr;
}

void abandon_ranks(int exit_code) {
  if (opened()) opened()->abort(exit_code);
}

}  // namespace sotto::transport
