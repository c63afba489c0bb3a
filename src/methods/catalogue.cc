#include "methods/catalogue.h"

#include "base/error.h"
#include "base/text.h"
#include "methods/dp_fedavg.h"
#include "methods/dpsgd/dp_head.h"
#include "methods/dpsgd/ladp_baselines.h"
#include "methods/dpsgd/ladp_fl.h"
#include "methods/dpsgd/ldp_fedavg.h"
#include "methods/dpsgd/pac_dp.h"
#include "methods/dpsgd/rpdp_fl.h"
#include "methods/fedavg.h"
#include "methods/fedprox.h"
#include "methods/local_only.h"
#include "methods/nbafl.h"
#include "methods/prompts/dp_fpl.h"
#include "methods/prototypes/entries.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace sotto::methods {
namespace {

// DP-SGD moves what a client keeps by the same noisy gradients as what it sends.
MethodEntry noisy_throughout(MethodEntry entry) {
  entry.personal_is_noisy = [](const RunSettings&) { return true; };
  return entry;
}

// As LaDP-FL prints these, a model is trained as it is, and what is sent of it gets noise afterwards.
MethodEntry noisy_unless_printed(MethodEntry entry) {
  entry.personal_is_noisy = [](const RunSettings& settings) { return !settings.as_printed(); };
  return entry;
}

}  // namespace

const std::vector<MethodEntry>& catalogue() {
  static const std::vector<MethodEntry> entries = {
      fedavg(),
      fedprox(),
      local_only(),
      dp_fedavg(),
      noisy_throughout(ldp_fedavg()),
      noisy_throughout(dp_head()),
      noisy_throughout(pac_dp()),
      noisy_throughout(fixed_threshold()),
      noisy_throughout(cgm_median_style()),
      noisy_throughout(aqc_style()),
      nbafl(),
      noisy_throughout(rpdp_fl_style()),
      noisy_unless_printed(ladp_fl()),
      noisy_unless_printed(full_dp()),
      noisy_throughout(time_varying_dp_style()),
      noisy_throughout(sensitive_dp_style()),
      noisy_throughout(dpa_ldp_style()),
      noisy_throughout(adap_ldp_style()),
      fedproto(),
      fedpcl(),
      fpl(),
      fedplvm(),
      fedtgp(),
      mpft(),
      dp_fpl(),
      promptfl(),
      fedotp(),
      fedpgp(),
  };
  return entries;
}

const MethodEntry& find_method(const std::string& name) {
  const auto& entries = catalogue();
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.name == name; });
  if (found == entries.end()) {
    const auto names = method_names();
    fail_user("no method is called '{}'{}; there are {}", name, did_you_mean(name, names), join(names, ", "));
  }
  return *found;
}

std::string trained_model_name(const RunSettings& spec) {
  if (find_method(spec.method).uses_model) return spec.model.name;
  return nlohmann::json::parse(spec.method_options).at("encoder").get<std::string>();
}

std::vector<std::string> method_names() {
  std::vector<std::string> names;
  for (const auto& entry : catalogue()) names.push_back(entry.name);
  return names;
}

}  // namespace sotto::methods
