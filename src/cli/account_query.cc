#include "cli/account_query.h"

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "privacy/accounting/calibrate.h"
#include "privacy/accounting/renyi.h"

#include <nlohmann/json.hpp>

#include <cmath>

namespace sotto::cli {
namespace {

using nlohmann::json;
using privacy::Step;

const std::vector<std::string>& event_keys() {
  static const std::vector<std::string> keys = {"mechanism", "noise_multiplier", "step_epsilon",  "step_delta",
                                                "steps",     "sampling",         "sampling_rate", "batches",
                                                "epochs",    "adjacency"};
  return keys;
}

void require_known_keys(const json& object, const std::vector<std::string>& more) {
  if (!object.is_object()) fail_user("a question is a JSON object, like {{\"mechanism\": \"gaussian\"}}");
  std::vector<std::string> known = event_keys();
  known.insert(known.end(), more.begin(), more.end());
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      fail_user("unknown key '{}'{}", key, did_you_mean(key, known));
    }
  }
}

std::optional<double> number(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return std::nullopt;
  if (!found->is_number()) fail_user("{} must be a number, not {}", key, found->dump());
  return found->get<double>();
}

std::optional<std::string> text(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return std::nullopt;
  if (!found->is_string()) fail_user("{} must be a text, not {}", key, found->dump());
  return found->get<std::string>();
}

int64_t whole(const json& object, const char* key, int64_t least, int64_t absent) {
  const double value = number(object, key).value_or(static_cast<double>(absent));
  if (!(value >= static_cast<double>(least) && value <= 1e12 && value == std::floor(value))) {
    fail_user("{} must be a whole number between {} and 10^12, not {}", key, least, value);
  }
  return static_cast<int64_t>(value);
}

bool is_allocated(const json& object) {
  return text(object, "sampling") == "allocation";
}

int64_t count_of(const json& object) {
  return whole(object, is_allocated(object) ? "epochs" : "steps", 0, 1);
}

// That keys which say how records take part do not contradict each other.
void check_sampling(const json& object) {
  const auto sampling = text(object, "sampling");
  const auto rate = number(object, "sampling_rate");
  if (sampling && *sampling != "none" && *sampling != "poisson" && *sampling != "allocation") {
    fail_user("there is no sampling '{}': it is none, poisson or allocation", *sampling);
  }
  if (number(object, "steps") && number(object, "epochs")) {
    fail_user("give epochs with sampling allocation, steps otherwise, and not both");
  }
  if (is_allocated(object)) {
    if (rate) fail_user("sampling allocation has no sampling_rate: every record is in one batch an epoch");
    if (!number(object, "batches")) fail_user("sampling allocation needs batches, the number of batches in an epoch");
    if (number(object, "steps")) fail_user("with sampling allocation give epochs instead of steps");
    return;
  }
  for (const char* key : {"batches", "epochs"}) {
    if (number(object, key)) fail_user("{} is for sampling allocation: say so, or leave it out", key);
  }
  if (sampling == "poisson" && !rate) fail_user("sampling poisson needs sampling_rate");
  if (sampling == "none" && rate && *rate != 1) fail_user("sampling none takes every record: leave sampling_rate out");
}

// Everything but the noise.
Step shape_of(const json& object) {
  check_sampling(object);
  Step step;
  step.kind = privacy::mechanism_from_text(text(object, "mechanism").value_or("gaussian"));
  step.sampling_rate = number(object, "sampling_rate").value_or(1);
  step.batches = whole(object, "batches", 1, 1);
  const auto adjacency = text(object, "adjacency");
  if (adjacency && *adjacency != "any") step.adjacency = privacy::adjacency_from_text(*adjacency);
  const bool stated = adjacency && *adjacency != "any";
  if (is_allocated(object) && !stated) {
    fail_user("random allocation amplifies under a stated adjacency only: give adjacency add-remove or zero-out");
  }
  if (step.sampling_rate != 1 && !stated) {
    fail_user(
        "sampling amplifies under a stated adjacency only: give adjacency add-remove, replace or "
        "replace-same-label");
  }
  return step;
}

privacy::Steps event_of(const json& object) {
  Step step = shape_of(object);
  const auto multiplier = number(object, "noise_multiplier");
  if (step.kind == Step::Kind::kGaussian || step.kind == Step::Kind::kLaplace ||
      step.kind == Step::Kind::kDiscreteGaussian || step.kind == Step::Kind::kCohortGaussian) {
    if (!multiplier) fail_user("a {} step needs noise_multiplier", privacy::to_text(step.kind));
    step.noise_multiplier = *multiplier;
  } else {
    const auto epsilon = number(object, "step_epsilon");
    if (!epsilon && !multiplier) fail_user("a {} step needs step_epsilon", privacy::to_text(step.kind));
    if (!epsilon && !(*multiplier > 0))
      fail_user("the noise multiplier must be a finite number above 0, not {}", *multiplier);
    step.epsilon = epsilon ? *epsilon : 1 / *multiplier;
  }
  if (step.kind == Step::Kind::kApproximate) {
    const auto delta = number(object, "step_delta");
    if (!delta) fail_user("an approximate step needs step_delta");
    step.delta = *delta;
  }
  return {step, count_of(object)};
}

bool describes_event(const json& object) {
  return object.contains("mechanism") || object.contains("noise_multiplier") || object.contains("step_epsilon");
}

std::vector<privacy::Steps> composed_events(const json& object) {
  std::vector<privacy::Steps> events;
  const auto list = object.find("compose");
  if (list == object.end() || list->is_null()) return events;
  if (!list->is_array()) fail_user("compose must be a list of events");
  for (const json& event : *list) {
    require_known_keys(event, {});
    events.push_back(event_of(event));
  }
  return events;
}

std::optional<privacy::Method> method_of(const json& object) {
  const auto name = text(object, "method");
  return name ? std::optional(privacy::method_from_text(*name)) : std::nullopt;
}

// The adjacency all events speak of, or "any" if none was stated.
std::string stated_adjacency(const json& object) {
  if (const auto own = text(object, "adjacency")) return *own;
  const auto list = object.find("compose");
  if (list == object.end() || !list->is_array()) return "any";
  std::string stated = "any";
  for (const json& event : *list) {
    const std::string other = text(event, "adjacency").value_or("any");
    if (other == "any") continue;
    if (stated != "any" && other != stated) fail_user("events under {} and under {} do not compose", stated, other);
    stated = other;
  }
  return stated;
}

}  // namespace

AccountQuery parse_account_query(const json& object) {
  require_known_keys(object, {"compose", "delta", "epsilon", "method", "order"});
  AccountQuery query;
  query.steps = composed_events(object);
  if (describes_event(object)) query.steps.push_back(event_of(object));
  if (query.steps.empty()) fail_user("say what to account for: noise_multiplier and steps, or a list of events");
  privacy::require_valid(query.steps);
  query.delta = number(object, "delta");
  query.epsilon = number(object, "epsilon");
  query.order = number(object, "order");
  query.method = method_of(object);
  query.adjacency = stated_adjacency(object);
  if (query.order) {
    if (!(*query.order > 1 && std::isfinite(*query.order))) fail_user("order must be above 1, not {}", *query.order);
    return query;
  }
  if (query.delta.has_value() == query.epsilon.has_value()) fail_user("give delta or epsilon, and not both");
  if (query.delta) privacy::require_valid_delta(*query.delta);
  if (query.epsilon) privacy::require_valid_epsilon(*query.epsilon);
  return query;
}

CalibrateQuery parse_calibrate_query(const json& object) {
  require_known_keys(object, {"compose", "delta", "epsilon", "method"});
  if (number(object, "noise_multiplier")) fail_user("noise_multiplier is what calibrate computes: leave it out");
  CalibrateQuery query;
  query.shape = shape_of(object);
  query.count = count_of(object);
  query.others = composed_events(object);
  query.adjacency = stated_adjacency(object);
  const auto epsilon = number(object, "epsilon");
  const auto delta = number(object, "delta");
  if (!epsilon || !delta) fail_user("calibrate needs epsilon and delta");
  query.epsilon = *epsilon;
  query.delta = *delta;
  std::vector<privacy::Steps> plan = query.others;
  plan.push_back({query.shape, query.count});
  plan.back().step.noise_multiplier = 1;
  plan.back().step.epsilon = 1;
  privacy::require_valid(plan);
  query.method = method_of(object).value_or(privacy::default_method(plan));
  return query;
}

json answer(const AccountQuery& query) {
  if (query.order) {
    const double rdp = privacy::RenyiCurve(query.steps).at(*query.order);
    if (!std::isfinite(rdp)) fail_user("the Rényi divergence of order {} is not finite here", *query.order);
    return {{"rdp", rdp}, {"order", *query.order}, {"adjacency", query.adjacency}};
  }
  const privacy::Method method = query.method.value_or(privacy::default_method(query.steps));
  const auto accountant = privacy::make_accountant(method);
  for (const privacy::Steps& entry : query.steps) accountant->compose(entry.step, entry.count);
  json result = {{"method", privacy::to_text(method)}, {"adjacency", query.adjacency}};
  if (query.delta) {
    const double epsilon = accountant->epsilon(*query.delta);
    if (!std::isfinite(epsilon))
      fail_user("there is no finite epsilon at delta {} by {}", *query.delta, to_text(method));
    result["epsilon"] = epsilon;
    result["delta"] = *query.delta;
  } else {
    const double log_delta = accountant->log_delta(*query.epsilon);
    result["epsilon"] = *query.epsilon;
    result["delta"] = std::exp(log_delta);
    result["log_delta"] = log_delta;
  }
  return result;
}

json answer(const CalibrateQuery& query) {
  const double multiplier =
      privacy::calibrate({query.epsilon, query.delta, query.method}, query.shape, query.count, query.others);
  return {{"noise_multiplier", multiplier},
          {"epsilon", query.epsilon},
          {"delta", query.delta},
          {"method", privacy::to_text(query.method)},
          {"adjacency", query.adjacency}};
}

json read_events(const std::string& file) {
  const std::string content = read_file(file);
  json whole = json::parse(content, nullptr, false);
  if (whole.is_array()) return whole;
  json events = json::array();
  for (const std::string& line : split(content, '\n')) {
    if (trim(line).empty()) continue;
    json event = json::parse(line, nullptr, false);
    if (!event.is_object()) fail_user("{}: neither a JSON list nor one JSON object a line", file);
    events.push_back(std::move(event));
  }
  return events;
}

}  // namespace sotto::cli
