#include "remote/preflight.h"

#include "base/error.h"
#include "base/files.h"
#include "federation/setup.h"
#include "member/member.h"
#include "member/records.h"
#include "net/certificates.h"
#include "net/key_folders.h"
#include "privacy/home.h"
#include "remote/client.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <optional>
#include <utility>

namespace sotto::remote {
namespace {

constexpr int64_t kSelf = 0;    // in its home's ledger everybody is the only client
constexpr int64_t kCopies = 4;  // broadcast, upload, personal state before and after
constexpr int64_t kSecondsPerDay = 86400;

std::string time_text(int64_t seconds) {
  return fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

// Rates per day are counted by the clock, and certificates are judged by it.
std::string clock_text(const fs::path& home) {
  const int64_t now = std::time(nullptr);
  if (fs::exists(home / "ledger.sqlite")) {
    const privacy::Home written(home);
    if (!written.ledger().spent_since(now + kSecondsPerDay, kSelf, settings::word(written.terms().observer)).empty()) {
      fail_user("the ledger has rows from after {}: set this machine's clock", time_text(now + kSecondsPerDay));
    }
  }
  return time_text(now);
}

std::string budget_text(const fs::path& folder, const member::Policy& policy, const federation::FederationPlan& plan,
                        int64_t records) {
  std::optional<privacy::Home> home;
  if (fs::exists(folder / "ledger.sqlite") || fs::exists(folder / "ledger.mark")) home.emplace(folder);
  const member::Prospect ahead = member::prospect(home ? &*home : nullptr, policy, plan, records);
  if (!ahead.is_affordable()) {
    fail_user(
        "the budget is ε = {:.4g} over all federations, and with this one it would be {:.4g}: stay away, or raise "
        "budget.epsilon",
        ahead.budget, ahead.promised);
  }
  return fmt::format("ε = {:.4g} of {:.4g} with this federation", ahead.promised, ahead.budget);
}

}  // namespace

Finding finding(const std::string& what, const std::function<std::string()>& look) {
  try {
    return {.what = what, .ok = true, .detail = look()};
  } catch (const UserError& problem) {
    return {.what = what, .ok = false, .detail = problem.what()};
  } catch (const Unreachable& problem) {
    return {.what = what, .ok = false, .detail = problem.what()};
  }
}

std::string validity_text(const std::string& certificate_pem) {
  const net::Validity validity = net::validity(certificate_pem);
  const int64_t now = std::time(nullptr);
  if (now < validity.not_before) {
    fail_user("it is valid from {}, and here it is {}: set this machine's clock", time_text(validity.not_before),
              time_text(now));
  }
  if (now > validity.not_after) fail_user("it expired on {}: have it renewed", time_text(validity.not_after));
  return "valid until " + time_text(validity.not_after);
}

net::Identity checked_identity(const fs::path& home, const member::Policy& policy) {
  net::Identity identity = net::read_identity(home);
  const std::string file = (home / "client.pem").string();
  const std::string name = net::client_name(identity.certificate_pem);
  try {
    validity_text(identity.certificate_pem);
    net::check_client(identity.certificate_pem, identity.key_pem, identity.authority_pem);
  } catch (const UserError& problem) {
    fail_user("{}: {}", file, problem.what());
  }
  if (!policy.name.empty() && policy.name != name) {
    fail_user("{} is {}'s, and server.name is {}: correct policy.toml, or enrol this home", file, name, policy.name);
  }
  return identity;
}

std::string free_space(const fs::path& folder, int64_t needed) {
  fs::path there = fs::absolute(folder);
  while (!fs::exists(there)) there = there.parent_path();
  const auto free = static_cast<int64_t>(fs::space(there).available);
  const double megabytes = static_cast<double>(free) / 1e6;
  if (free < needed) {
    fail_user("{:.0f} MB are free in {}, and {:.0f} MB are needed: make room", megabytes, there.string(),
              static_cast<double>(needed) / 1e6);
  }
  return fmt::format("{:.0f} MB free, {:.3f} needed", megabytes, static_cast<double>(needed) / 1e6);
}

int64_t broadcast_bytes(const federation::PublicSetup& setup) {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : setup.method().make_server(setup.context())->open().values) {
    bytes += static_cast<int64_t>(tensor.nbytes());
  }
  return bytes;
}

std::vector<Finding> check_home(const PreflightOptions& options) {
  std::vector<Finding> all;
  const auto look = [&](const std::string& what, const std::function<std::string()>& how) {
    all.push_back(finding(what, how));
    return all.back().ok;
  };

  std::optional<member::Policy> policy;
  look("policy", [&] {
    policy = member::read_policy(options.home);
    return (options.home / "policy.toml").string();
  });
  std::optional<net::Identity> identity;
  if (!options.insecure) {
    look("certificate", [&] {
      identity = checked_identity(options.home, policy.value_or(member::Policy()));
      return fmt::format("{}, {}", net::client_name(identity->certificate_pem),
                         validity_text(identity->certificate_pem));
    });
  }
  look("clock", [&] { return clock_text(options.home); });
  if (!policy || (!options.insecure && !identity)) return all;

  std::optional<federation::FederationPlan> plan;
  look("server", [&] {
    const std::string address = options.address.empty() ? policy->address : options.address;
    if (address.empty()) fail_user("the policy has no server.address; write it there, or give --server");
    plan.emplace(Client(address, identity, policy->name).plan());
    return fmt::format("{} has the plan {}", address, plan->short_hash());
  });
  if (!plan) return all;

  look("disk", [&] { return free_space(options.home, kCopies * broadcast_bytes(plan->setup())); });
  int64_t records = 0;
  const bool fits = look("records", [&] {
    const federation::Setup setup =
        federation::Setup::at_home(plan->setup(), kSelf, member::load_records(*policy, *plan));
    records = setup.partition().shard(kSelf).size();
    return fmt::format("{} to train on, in the declared shape and classes", records);
  });
  if (!fits) return all;
  look("policy allows it", [&] {
    member::require_allowed(*policy, *plan, records);
    return plan->setup().spec().method;
  });
  look("budget", [&] { return budget_text(options.home, *policy, *plan, records); });
  return all;
}

}  // namespace sotto::remote
