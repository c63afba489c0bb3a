#include "methods/fedprox.h"

#include "methods/fedavg.h"
#include "methods/parts/averaging.h"

#include <ATen/ATen.h>

namespace sotto::methods {
namespace {

struct FedProxOptions {
  double mu = 0.01;  // strength of the proximal term; 0 is FedAvg
};

FedProxOptions read_options(settings::Section& section) {
  FedProxOptions options;
  options.mu = section.number("mu", options.mu, settings::kNonNegative);
  return options;
}

std::unique_ptr<ClientMethod> make_client(const ClientContext& context) {
  const double mu = context.spec.options_of<FedProxOptions>().mu;
  return make_averaging_client(context, [mu](const models::FlatParameters& parameters, const at::Tensor& anchor) {
    parameters.shared_gradient().add_(parameters.shared() - anchor, mu);
  });
}

}  // namespace

MethodEntry fedprox() {
  return {.name = "fedprox",
          .what = "FedAvg with a proximal term for heterogeneous clients; not private",
          .citation = "Li et al., MLSys 2020",
          .family = "averaging",
          .read_options = [](settings::Section& section) { return std::any(read_options(section)); },
          .plan = averaging_plan,
          .personal = has_personal_part,
          .global = [](const RunSettings& spec) { return !has_personal_part(spec); },
          .make_client = make_client,
          .make_server = make_averaging_server,
          .upload_shape = averaging_upload};
}

}  // namespace sotto::methods
