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
#include "methods/parts/fine_tuning.h"
#include "methods/personal/entries.h"
#include "methods/prompts/dp_fpl.h"
#include "methods/prototypes/entries.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <deque>
#include <mutex>

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

std::vector<MethodEntry> all_with_fine_tuning(std::vector<MethodEntry> entries) {
  for (MethodEntry& entry : entries) entry = with_fine_tuning(std::move(entry));
  return entries;
}

// What methods were called before, and are called now.
constexpr std::pair<const char*, const char*> kOldNames[] = {
    {"cgm-median-style", "cgm-median"},           {"aqc-style", "aqc"},         {"rpdp-fl-style", "rpdp-fl"},
    {"time-varying-dp-style", "time-varying-dp"}, {"dpa-ldp-style", "dpa-ldp"}, {"adap-ldp-style", "adap-ldp"}};

// Methods of other programs: they stay where they are, since runs point to them.
struct Added {
  std::mutex mutex;
  std::deque<MethodEntry> entries;
};

Added& added() {
  static Added methods;
  return methods;
}

const MethodEntry* find_known(const std::string& name) {
  const auto is_called = [&](const MethodEntry& entry) { return entry.name == name; };
  const auto& entries = catalogue();
  const auto found = std::find_if(entries.begin(), entries.end(), is_called);
  if (found != entries.end()) return &*found;
  const std::lock_guard lock(added().mutex);
  const auto foreign = std::find_if(added().entries.begin(), added().entries.end(), is_called);
  return foreign == added().entries.end() ? nullptr : &*foreign;
}

}  // namespace

std::string current_name(const std::string& name) {
  for (const auto& [before, now] : kOldNames) {
    if (name == before) return now;
  }
  return name;
}

const std::vector<MethodEntry>& catalogue() {
  static const std::vector<MethodEntry> entries = {
      fedavg(),
      fedprox(),
      local_only(),
      dp_fedavg(),
      noisy_throughout(ldp_fedavg()),
      noisy_throughout(dp_head()),
      noisy_throughout(mr_mtl()),
      ditto(),
      apfl(),
      noisy_throughout(fedper()),
      fedrep(),
      noisy_throughout(pac_dp()),
      noisy_throughout(fixed_threshold()),
      noisy_throughout(cgm_median()),
      noisy_throughout(aqc()),
      nbafl(),
      noisy_throughout(rpdp_fl()),
      noisy_unless_printed(ladp_fl()),
      noisy_unless_printed(full_dp()),
      noisy_unless_printed(time_varying_dp()),
      noisy_throughout(sensitive_dp_style()),
      noisy_unless_printed(dpa_ldp()),
      noisy_unless_printed(adap_ldp()),
      fedproto(),
      fedpcl(),
      fpl(),
      fedplvm(),
      fedtgp(),
      mpft(),
      dp_prototypes(),
      dp_fpl(),
      promptfl(),
      fedotp(),
      fedpgp(),
  };
  static const std::vector<MethodEntry> tunable = all_with_fine_tuning(entries);
  return tunable;
}

const MethodEntry& find_method(const std::string& asked) {
  const std::string name = current_name(asked);
  if (const MethodEntry* found = find_known(name)) return *found;
  const auto names = method_names();
  fail_user("no method is called '{}'{}; there are {}", name, did_you_mean(name, names), join(names, ", "));
}

void add_method(MethodEntry entry) {
  if (find_known(entry.name) != nullptr) fail_user("there is a method '{}' already; choose another name", entry.name);
  const std::lock_guard lock(added().mutex);
  added().entries.push_back(std::move(entry));
}

std::string trained_model_name(const RunSettings& spec) {
  if (find_method(spec.method).uses_model) return spec.model.name;
  return nlohmann::json::parse(spec.method_options).at("encoder").get<std::string>();
}

std::vector<std::string> method_names() {
  std::vector<std::string> names;
  for (const auto& entry : catalogue()) names.push_back(entry.name);
  const std::lock_guard lock(added().mutex);
  for (const auto& entry : added().entries) names.push_back(entry.name);
  return names;
}

}  // namespace sotto::methods
