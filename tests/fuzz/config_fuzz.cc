// Configs and policies: TOML that people write, and that others hand to them.
#include "config/load.h"
#include "fuzz.h"
#include "member/policy.h"

namespace {

using namespace sotto;

constexpr const char* kConfig = R"(
rounds = 3
seed = 5
[data]
name = "custom"
clients = 2
partition = "dirichlet"
alpha = 0.5
[data.schema]
columns = [
  {name = "x", kind = "number", range = [-3, 3]},
  {name = "label", kind = "label", values = ["no", "yes"]},
]
[model]
name = "mlp"
hidden = [8]
personal = ["head."]
[federation]
batch = 20
lr = 0.2
[method]
name = "ldp-fedavg"
[privacy]
epsilon = 4.0
delta = 1e-4
adjacency = "zero-out"
budgets = [1.0, 2.0]
)";

constexpr const char* kPolicy = R"(
[data]
name = "custom"
path = "records.csv"
[budget]
epsilon = 4.0
delta = 1e-4
adjacency = "zero-out"
per_day = 0.5
[allow]
methods = ["ldp-fedavg"]
declare = ["records"]
least_cohort = 2
noise = "replay"
[server]
address = "localhost:7443"
name = "home-1"
)";

}  // namespace

std::vector<std::string> fuzz::seeds() {
  return {kConfig, kPolicy};
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text = fuzz::bytes_of(data, size);
  fuzz::attempt([&] {
    const config::RunSpec spec = config::parse_run_spec(text, "the input", {});
    config::parse_run_spec(spec.to_toml(), "its own text", {});
  });
  return fuzz::attempt([&] { member::read_policy(fuzz::as_file("policy.toml", text).parent_path()); });
}
