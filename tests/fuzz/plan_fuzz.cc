// The text of a federation's plan, as a client gets it from a server that it has no reason to trust.
#include "config/load.h"
#include "federation/federation_plan.h"
#include "fuzz.h"
#include "settings/toml.h"

namespace {

using namespace sotto;

std::string plan_text(const std::string& toml, const std::string& declared) {
  const auto table = [](const std::string& text, const std::string& name) {
    settings::ParsedToml parsed = settings::parse_toml(text, "an example");
    return settings::Section(std::move(parsed.value), name, parsed.source);
  };
  return federation::FederationPlan(config::parse_run_spec(toml, "an example", {}), table(declared, "declared"),
                                    table("", "serve"))
      .text();
}

constexpr const char* kPrivacy = "[privacy]\nepsilon = 4.0\ndelta = 1e-4\nadjacency = \"zero-out\"\n";
constexpr const char* kModel = "[model]\nname = \"mlp\"\nhidden = [8]\n";
constexpr const char* kSchema = R"([data.schema]
columns = [{name = "x", kind = "number", range = [-3, 3]}, {name = "label", kind = "label", values = ["no", "yes"]}]
)";

}  // namespace

std::vector<std::string> fuzz::seeds() {
  const std::string head = "rounds = 3\nseed = 5\n[data]\nclients = 2\n";
  return {plan_text(head + kSchema + kModel + "[method]\nname = \"ldp-fedavg\"\n" + kPrivacy, "records = 60\n"),
          plan_text(head + kModel + "[method]\nname = \"fedavg\"\n",
                    "kind = \"features\"\nshape = [6]\nclasses = [\"a\", \"b\"]\nrecords = 20\n"),
          plan_text(head + "centre = \"record\"\nnormalise = true\n[method]\nname = \"promptfl\"\nencoder = \"tiny\"\n",
                    "kind = \"features\"\nshape = [6]\nclasses = [\"a\", \"b\"]\nrecords = 20\n")};
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz::attempt([&] {
    const federation::FederationPlan plan(fuzz::bytes_of(data, size));
    plan.setup().facts();
  });
}
