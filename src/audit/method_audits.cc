#include "audit/method_audits.h"

#include "audit/method_release.h"
#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "config/load.h"
#include "federation/cohort.h"
#include "methods/catalogue.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace sotto::audit {
namespace {

constexpr int64_t kDimensions = 6;
constexpr int64_t kClasses = 2;
constexpr int64_t kClients = 4;
constexpr int64_t kTrain = 96;
constexpr int64_t kTest = 24;

// A bound that every canary's gradient reaches.
const std::string kTight = "clip = 0.3\n";
const std::string kTightCurve = "curve = {family = \"constant\", coefficients = [0.3]}\n";

// Prototypes of few dimensions, at a radius that features reach.
const std::string kSmallSpace = "width = 4\nhead = [8]\nradius = 1\n";

// Prompts of few words, under a bound that one record's gradient reaches.
const std::string kShortPrompt = "length = 2\nclip = 0.01\n";

// Enough of it for one record to turn an encoder.
const std::string kLongTraining = "[federation]\nbatch = 24\nlocal_epochs = 20\nlr = 0.2\n";

// Two secret batches an epoch, and four.
const std::string kHalf = "[federation]\nbatch = 12\nlr = 0.2\n";
const std::string kPoisson = "batches = \"poisson\"\n" + kHalf;
const std::string kAllocatedSteps = "[federation]\nbatch = 6\nlocal_epochs = 2\n";
const std::string kAllocated = kAllocatedSteps + "lr = 0.2\n";

// Of a method that finds its step by itself.
const std::string kOwnStep = "[federation]\nbatch = 24\n";

// A bound that all updates exceed: what counts is where they point.
const std::string kSmallUpdate = "clip = 0.001\n";

data::Records blobs(int64_t count, uint64_t seed) {
  RandomStream stream(seed, "audit-blobs");
  data::Records records;
  records.x = at::empty({count, kDimensions});
  records.y = at::empty({count}, at::kLong);
  records.domain = at::zeros({count}, at::kLong);
  auto* values = records.x.data_ptr<float>();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t label = i % kClasses;
    records.y[i] = label;
    for (int64_t j = 0; j < kDimensions; ++j) {
      values[i * kDimensions + j] = static_cast<float>(stream.normal() + (j == label ? 3.0 : 0.0));
    }
  }
  return records;
}

// The sections that a method needs to run at all.
std::string sections(const std::string& method, const std::string& variant, double epsilon, const std::string& options,
                     const std::string& adjacency) {
  const methods::MethodEntry& entry = methods::find_method(method);
  const bool client_level = method == "dp-fedavg", has_curve = options.find("curve") != std::string::npos;
  std::string about_clients;
  if (client_level)
    about_clients = "unit = \"client\"\nobserver = \"clients\"\n";
  else if (adjacency == "add-remove")
    about_clients = fmt::format("records = {}\n", kTrain / kClients);
  return fmt::format(
      "[method]\nname = \"{}\"\nvariant = \"{}\"\n{}\n{}\n[privacy]\nepsilon = {}\ndelta = 1e-5\nadjacency = "
      "\"{}\"\n{}",
      method, variant, has_curve ? "" : join(entry.example_options, "\n"), options, epsilon,
      client_level ? "add-remove" : adjacency, about_clients);
}

class Rows {
 public:
  explicit Rows(double epsilon) : epsilon_(epsilon) {}

  MethodAudit operator()(const std::string& method, const std::string& variant, const std::string& flaw,
                         const std::string& options = "", const std::string& adjacency = "replace") const {
    return {.method = method, .variant = variant, .flaw = flaw, .make = [=, epsilon = epsilon_] {
              return release_case(audit_federation(sections(method, variant, epsilon, options, adjacency)), {});
            }};
  }

  // As printed in a round that is not the first, so that the client has trained on its records before it releases.
  MethodAudit trained(const std::string& method, const std::string& flaw, const std::string& options) const {
    return {.method = method, .variant = "paper", .flaw = flaw, .make = [=, epsilon = epsilon_] {
              return release_case(audit_federation(sections(method, "paper", epsilon, options, "replace-same-label")),
                                  {.broadcast = methods::Broadcast{.round = 1, .values = {}}});
            }};
  }

  // The sound variant where a client's other records are of no account.
  MethodAudit alone(const std::string& method, Others others, const std::string& options,
                    const std::string& adjacency) const {
    return {.method = method, .variant = "sound", .flaw = "", .make = [=, epsilon = epsilon_] {
              return release_case(audit_federation(sections(method, "sound", epsilon, options, adjacency)),
                                  {.others = others});
            }};
  }

  // A method that promises nothing, and has no [privacy].
  MethodAudit in_the_clear(const std::string& method) const {
    return {.method = method, .variant = "sound", .flaw = "", .note = "without noise", .make = [=] {
              return release_case(audit_federation(fmt::format("[method]\nname = \"{}\"\n", method)), {});
            }};
  }

  // With secret batches: who else is in them would hide the canary as noise does.
  MethodAudit secret_batches(const std::string& method, const std::string& options,
                             const std::string& adjacency) const {
    return alone(method, Others::kBlank, options, adjacency);
  }

 private:
  double epsilon_;
};

MethodAudit noted(std::string note, MethodAudit audit) {
  audit.note = std::move(note);
  return audit;
}

std::vector<MethodAudit> listed(const Rows& row) {
  return {
      row.in_the_clear("fedavg"),
      row.in_the_clear("fedprox"),
      row("ldp-fedavg", "sound", "", kTight),
      noted("zero-out", row("ldp-fedavg", "sound", "", kTight, "zero-out")),
      noted("add-remove", row("ldp-fedavg", "sound", "", kTight, "add-remove")),
      noted("zero-out, Poisson batches", row.secret_batches("ldp-fedavg", kTight + kPoisson, "zero-out")),
      noted("add-remove, Poisson batches", row.secret_batches("ldp-fedavg", kTight + kPoisson, "add-remove")),
      noted("zero-out, allocated batches", row.secret_batches("ldp-fedavg", kTight + kAllocated, "zero-out")),
      noted("add-remove, allocated batches", row.secret_batches("ldp-fedavg", kTight + kAllocated, "add-remove")),
      row("dp-head", "sound", "", kOwnStep),
      noted("zero-out", row("dp-head", "sound", "", kOwnStep, "zero-out")),
      noted("zero-out, allocated batches",
            row.secret_batches("dp-head", "steps = \"allocated\"\n" + kAllocatedSteps, "zero-out")),
      row("mr-mtl", "sound", "", kTight),
      noted("normalised", row("mr-mtl", "sound", "", "descent = \"normalised\"\n", "zero-out")),
      row("ditto", "sound", "", kTight),
      row("apfl", "sound", "", kTight),
      row("fedper", "sound", "", kTight),
      row("fedrep", "sound", "", kTight),
      row.secret_batches("rpdp-fl", kTight + kHalf, "replace"),
      noted("zero-out", row.secret_batches("rpdp-fl", kTight + kHalf, "zero-out")),
      noted("add-remove", row.alone("nbafl", Others::kZero, kSmallUpdate, "add-remove")),
      row("dp-fedavg", "sound", ""),
      row("pac-dp", "sound", "", kTightCurve),
      row("pac-dp", "paper", "sensitivity C/B although a record is replaced", kTightCurve),
      row("fixed", "paper", "sensitivity C/B although a record is replaced", kTight),
      row.alone("nbafl", Others::kZero, kSmallUpdate, "replace"),
      row("nbafl", "paper", "sensitivity 2C/m although one record turns the update round", "clip = 0.05\n"),
      row("ladp-fl", "sound", "", kTight),
      noted("each layer bounded", row("ladp-fl", "sound", "", kTight + "clipping = \"layers\"\n")),
      row("ladp-fl", "paper", "layers of small weights are sent without noise", "least_norm = 1.4\n"),
      row("ladp-fl", "paper", "the noise's scale is computed from private weights",
          "least_norm = 0\nkl_least = 1e-12\n"),
      row("full-dp", "paper", ""),
      row("fedproto", "sound", "", kSmallSpace),
      row.trained("fedproto", "prototypes come from an encoder that was trained on the record",
                  kSmallSpace + kLongTraining),
      row("fedpcl", "sound", "", kSmallSpace),
      row("fpl", "sound", "", kSmallSpace),
      row("fedtgp", "sound", "", kSmallSpace),
      row("mpft", "sound", "", kSmallSpace),
      row("dp-prototypes", "sound", ""),
      noted("zero-out", row("dp-prototypes", "sound", "", "", "zero-out")),
      noted("add-remove", row("dp-prototypes", "sound", "", "", "add-remove")),
      row("dp-fpl", "sound", "", kShortPrompt + "rank = 2\n"),
      row("dp-fpl", "paper", "the batch's mean gradient is clipped, not each record's", kShortPrompt + "rank = 2\n"),
      row("promptfl", "sound", "", kShortPrompt),
      row("fedotp", "sound", "", kShortPrompt),
      row("fedpgp", "sound", "", kShortPrompt + "rank = 2\n"),
      row("fedplvm", "sound", "", kSmallSpace),
      row.trained("fedplvm", "clusters, and the encoder they lie in, depend on the record",
                  kSmallSpace + kLongTraining),
  };
}

}  // namespace

std::shared_ptr<const federation::Setup> audit_federation(const std::string& toml) {
  const config::RunSpec spec = config::parse_run_spec(
      fmt::format("rounds = 1\n[data]\nclients = {}\n[model]\nname = \"mlp\"\nhidden = [8]\n{}{}", kClients,
                  toml.find("[federation]") == std::string::npos ? "[federation]\nbatch = 24\nlr = 0.2\n" : "", toml),
      "audit", {});
  auto data = std::make_shared<models::TaskData>();
  data::Dataset& dataset = data->dataset;
  dataset.name = "blobs";
  dataset.kind = data::Kind::kFeatures;
  dataset.class_names = {"a", "b"};
  dataset.domain_names = {"only"};
  dataset.train = blobs(kTrain, 1);
  dataset.test = blobs(kTest, 2);
  data->task = {{kDimensions}, kClasses};
  return std::make_shared<const federation::Setup>(spec, std::move(data));
}

std::vector<MethodAudit> method_audits(double epsilon) {
  const Rows row(epsilon);
  std::vector<MethodAudit> all = listed(row);
  for (const methods::MethodEntry& entry : methods::catalogue()) {
    const bool known = std::any_of(all.begin(), all.end(), [&](const MethodAudit& audit) {
      return audit.method == entry.name && audit.variant == "sound";
    });
    if (known) continue;
    try {
      const auto ground = audit_federation(sections(entry.name, "sound", epsilon, "", "replace"));
      if (!ground->plan_for(0).empty()) all.push_back(row(entry.name, "sound", ""));
    } catch (const UserError&) {
      // It needs other data or a model of its own.
    }
  }
  return all;
}

}  // namespace sotto::audit
