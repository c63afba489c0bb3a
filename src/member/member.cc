#include "member/member.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fault_points.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "data/origin.h"
#include "federation/client_runtime.h"
#include "federation/released_evaluation.h"
#include "io/safetensors.h"
#include "privacy/event_json.h"
#include "privacy/guarantee.h"
#include "privacy/wire.h"

#include <ATen/ATen.h>
#include <c10/util/Exception.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

namespace sotto::member {
namespace {

using nlohmann::json;

// In its home's ledger everybody is the first and only client, whatever number a federation gives it.
constexpr int64_t kSelf = 0;
constexpr double kTolerance = 1e-9;  // as a ledger compares ε with a budget
constexpr int64_t kDay = 86'400;     // seconds

std::string note_of(const federation::FederationPlan& plan) {
  return "plan " + plan.hash();
}

std::string sealed_note(const federation::FederationPlan& plan, int64_t round) {
  return fmt::format("sealed {} {}", plan.hash(), round);
}

// What a trusted server will release on the strength of what it was handed.
std::vector<privacy::Event> releases_of_the_server(const methods::ReleasePlan& plan) {
  const auto is_handed_over = [](const privacy::Channel& channel) {
    return channel.terms().mechanism == privacy::kTrustedMechanism;
  };
  std::vector<privacy::Event> releases;
  if (std::none_of(plan.begin(), plan.end(), is_handed_over)) return releases;
  for (const privacy::Channel& channel : plan) {
    if (!is_handed_over(channel)) releases.push_back(channel.terms());
  }
  return releases;
}

double spent_at(const privacy::Home& home) {
  const auto tallies = home.ledger().tallies(settings::word(home.terms().observer));
  const auto found = tallies.find(kSelf);
  return found == tallies.end() ? 0.0 : found->second.proven(home.terms().delta);
}

double promised_at(privacy::Home* home, const Policy& policy, const federation::FederationPlan& plan, int64_t client,
                   int64_t records) {
  const privacy::Tally planned = promised(policy, plan, client, records);
  if (home != nullptr) return home->ledger().epsilon_with(plan.short_hash(), kSelf, planned);
  return planned.empty() ? 0.0 : planned.proven(policy.budget.delta);
}

fs::path state_file_of(const privacy::Home& home, const federation::FederationPlan& plan, int64_t round) {
  return home.folder() / "states" / fmt::format("{}-{:06}.safetensors", plan.short_hash(), round);
}

privacy::PrivateState read_state(const fs::path& file) {
  return privacy::PrivateState(clone(io::read_safetensors(file).tensors));
}

// It comes from a server that is trusted with nothing. One that fits in part would fail where a record meets the rest, and
// tell by that which records there are.
void require_broadcast_like(const federation::Setup& setup, const NamedTensors& opening,
                            const methods::Broadcast& broadcast) {
  methods::BroadcastShape shape = privacy::shapes_of(opening);
  const auto& of_method = setup.method().broadcast_shape;
  if (of_method) shape = of_method(setup.public_context(), std::move(shape), broadcast);
  const auto misfit = privacy::misfit(broadcast.values, shape);
  if (misfit) throw NotAllowed(fmt::format("the server's broadcast is none of this method's: {}", *misfit));
}

std::string first_line(const std::exception& error) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  const std::string text = of_torch != nullptr ? of_torch->what_without_backtrace() : error.what();
  return text.substr(0, text.find('\n'));
}

void refuse_unless_affordable(const Prospect& ahead) {
  if (ahead.is_affordable()) return;
  throw NotAllowed(fmt::format(
      "the policy does not allow this federation: its budget is ε = {:.4g} over all federations, and with this "
      "one it would be {:.4g}",
      ahead.budget, ahead.promised));
}

bool draws_cohorts(const config::RunSpec& spec) {
  return methods::hides_cohorts(spec.federation.sampling) && methods::expected_cohort(spec) < spec.data.clients;
}

}  // namespace

bool Prospect::is_affordable() const {
  return promised <= budget * (1 + kTolerance);
}

Prospect prospect(privacy::Home* home, const Policy& policy, const federation::FederationPlan& plan, int64_t records) {
  const config::RunSpec& spec = plan.setup().spec();
  Prospect ahead{.client = 0,
                 .records = records,
                 .budget = home != nullptr ? home->terms().epsilon : policy.budget.epsilon,
                 .spent = home != nullptr ? spent_at(*home) : 0,
                 .promised = 0};
  for (int64_t client = 1; spec.privacy && client < spec.data.clients; ++client) {
    if (spec.privacy->budget_of(client) > spec.privacy->budget_of(ahead.client)) ahead.client = client;
  }
  ahead.promised = promised_at(home, policy, plan, ahead.client, records);
  return ahead;
}

void require_affordable(privacy::Home& home, const Policy& policy, const federation::FederationPlan& plan,
                        int64_t records) {
  if (!home.ledger().note(note_of(plan)).empty()) return;
  const config::RunSpec& spec = plan.setup().spec();
  int64_t cheapest = 0;
  for (int64_t client = 1; spec.privacy && client < spec.data.clients; ++client) {
    if (spec.privacy->budget_of(client) < spec.privacy->budget_of(cheapest)) cheapest = client;
  }
  refuse_unless_affordable({.client = cheapest,
                            .records = records,
                            .budget = home.terms().epsilon,
                            .spent = spent_at(home),
                            .promised = promised_at(&home, policy, plan, cheapest, records)});
}

PersonalState read_personal_state(const privacy::Home& home, const federation::FederationPlan& plan) {
  while (true) {
    const json note = json::parse(home.ledger().note(note_of(plan)), nullptr, false);
    if (!note.is_object()) fail_user("{} takes no part in {}", home.folder().string(), plan.short_hash());
    PersonalState own{.client = note.at("client"), .round = note.at("state_round"), .state = {}};
    if (own.round == 0) return own;
    const fs::path file = state_file_of(home, plan, own.round);
    try {
      own.state = read_state(file);
      return own;
    } catch (const UserError&) {
      const json now_noted = json::parse(home.ledger().note(note_of(plan)), nullptr, false);
      if (now_noted == note) throw;  // otherwise a newer one has taken its place
    }
  }
}

privacy::HomeRecords home_records(const data::DataOptions& source, const models::TaskData& data) {
  std::vector<std::string> contents;
  for (const data::Part& part : data::origin_of(source)) contents.push_back(part.content);
  std::sort(contents.begin(), contents.end());
  return {.name = data.dataset.name,
          .content = sha256(json(contents).dump()),
          .dealt = sha256(json(source.domains).dump()),
          .clients = 1};
}

// What the home's ledger notes of a plan, in one row that every commit replaces.
struct Member::Progress {
  int64_t client = 0;
  int64_t participations = 0;
  int64_t round = 0;        // the last one that was worked on
  int64_t state_round = 0;  // of the personal state; 0: there is none
  bool skipped = false;     // it was done without an upload, and everybody may know
  json outbox = nullptr;    // what is sealed and not settled
};

// The personal state after the last sealed round, and what a step makes of it until that is sealed.
class Member::OwnState : public federation::StateStore {
 public:
  explicit OwnState(privacy::PrivateState state) : state_(std::move(state)) {}

  privacy::PrivateState get(int64_t) const override { return state_; }
  void put(int64_t, int64_t, privacy::PrivateState state) override { next_ = std::move(state); }
  void commit(int64_t) override {
    if (next_) state_ = std::move(*next_);
    next_.reset();
  }
  void restore(int64_t) override { next_.reset(); }
  const std::optional<privacy::PrivateState>& next() const { return next_; }

 private:
  privacy::PrivateState state_;
  std::optional<privacy::PrivateState> next_;
};

Member::Member(privacy::Home& home, const Policy& policy, const federation::FederationPlan& plan, int64_t client,
               const federation::Setup& setup)
    : home_(home),
      policy_(policy),
      plan_(plan),
      client_(client),
      setup_(setup),
      first_broadcast_(setup_.method().make_server(setup_.public_context())->open().values) {
  require_allowed(policy_, plan_, setup_.partition().shard(client_).size());
  if (policy_.unproven) home_.permit_unproven();
  if (home_.ledger().note(note_of(plan_)).empty()) {
    join();
  } else if (const int64_t known = read_progress().client; known != client_) {
    throw NotAllowed(fmt::format("the home {} takes part in this federation as client {}, and the server calls it {}",
                                 home_.folder().string(), known, client_));
  }
  const Progress progress = read_progress();
  privacy::PrivateState state;
  if (progress.state_round > 0) {
    state = read_state(state_file(progress.state_round));
  }
  state_ = std::make_unique<OwnState>(std::move(state));
  method_ = setup_.method().make_client(setup_.client_context());
}

Member::~Member() = default;

void Member::join() {
  require_affordable();
  make_folder(home_.folder() / "outbox");
  make_folder(home_.folder() / "states");
  // Whom a trusted server draws is its secret, so that every round counts, at once.
  if (draws_cohorts(setup_.spec())) {
    privacy::Ledger ledger;
    ledger.charge_as(home_, plan_.short_hash(), kSelf);
    for (int64_t round = 1; round <= setup_.spec().rounds; ++round) charge_the_server(round, ledger);
  }
  Progress progress;
  progress.client = client_;
  write_progress(progress);
  home_.commit();
  fault_point("member.joined");
}

Member::Progress Member::read_progress() const {
  const json value = json::parse(home_.ledger().note(note_of(plan_)), nullptr, false);
  try {
    return {value.at("client"),      value.at("participations"), value.at("round"),
            value.at("state_round"), value.at("skipped"),        value.at("outbox")};
  } catch (const json::exception&) {
    fail_user("the ledger of {} is damaged: what it notes of the plan {} cannot be read", home_.folder().string(),
              plan_.short_hash());
  }
}

void Member::write_progress(const Progress& p) {
  home_.ledger().set_note(note_of(plan_), json{{"client", p.client},
                                               {"participations", p.participations},
                                               {"round", p.round},
                                               {"state_round", p.state_round},
                                               {"skipped", p.skipped},
                                               {"outbox", p.outbox}}
                                              .dump());
}

void Member::require_affordable() const {
  const int64_t records = setup_.partition().shard(client_).size();
  refuse_unless_affordable({.client = client_,
                            .records = records,
                            .budget = home_.terms().epsilon,
                            .spent = spent_at(home_),
                            .promised = promised_at(&home_, policy_, plan_, client_, records)});
}

double Member::spent_epsilon() const {
  return spent_at(home_);
}

int64_t Member::participations() const {
  return read_progress().participations;
}

int64_t Member::last_round() const {
  return read_progress().round;
}

void Member::charge_the_server(int64_t round, privacy::Ledger& ledger) const {
  for (privacy::Event event : releases_of_the_server(setup_.plan_for(client_))) {
    event.round = round;
    event.client = client_;
    event.generator = settings::word(setup_.spec().privacy->generator);
    ledger.spend(event, setup_.participations_of(client_));
  }
}

// Of what was spent in the last day, without what this round would add: so a round is never half allowed.
std::optional<std::string> Member::braked() const {
  if (policy_.per_day == 0) return std::nullopt;
  const privacy::Tally today =
      home_.ledger().spent_since(seconds_now() - kDay, kSelf, settings::word(policy_.budget.observer));
  const double spent = today.empty() ? 0.0 : today.proven(policy_.budget.delta);
  if (spent < policy_.per_day) return std::nullopt;
  return fmt::format("ε = {:.4g} was spent in the last 24 hours, and budget.per_day is {:.4g}", spent, policy_.per_day);
}

Outcome Member::work(const methods::Broadcast& broadcast) {
  const int64_t round = broadcast.round + 1;
  Progress progress = read_progress();
  if (round == progress.round) {
    if (auto kept = sealed(progress)) return {.upload = std::move(kept), .skips = false, .why = ""};
    return {.upload = std::nullopt, .skips = progress.skipped, .why = "this round was worked on already"};
  }
  if (round < progress.round) {
    throw NotAllowed(
        fmt::format("the server asks for round {} again, and round {} was worked on already", round, progress.round));
  }
  if (round > setup_.spec().rounds && !is_evaluation(round)) {
    throw NotAllowed(fmt::format("the server asks for round {}, and the plan has {}", round, setup_.spec().rounds));
  }
  if (!is_evaluation(round) && progress.participations >= setup_.participations_of(client_)) {
    return {.upload = std::nullopt, .skips = true, .why = "the plan's number of participations is reached"};
  }
  require_broadcast_like(setup_, first_broadcast_, broadcast);
  if (const auto why = braked()) return {.upload = std::nullopt, .skips = true, .why = *why};

  privacy::Ledger ledger;
  if (setup_.spec().privacy) {
    ledger.agree(*setup_.spec().privacy,
                 setup_.spec().as_printed() ? privacy::HeldTo::kClaimed : privacy::HeldTo::kProven);
  }
  if (policy_.unproven) ledger.permit_clear();
  ledger.charge_as(home_, plan_.short_hash(), kSelf);
  federation::Reply reply;
  std::string releases;
  try {
    if (is_evaluation(round)) {
      reply = evaluation_reply(broadcast, ledger);
    } else {
      federation::ClientRuntime runtime(setup_, client_, *method_, *state_, ledger);
      reply = runtime.serve(broadcast, progress.participations + 1);
    }
    json rows = json::array();
    for (const privacy::Event& event : ledger.events()) rows.push_back(privacy::to_json(event));
    releases = rows.dump();
    if (reply.upload && reply.upload->trusted() != nullptr && !draws_cohorts(setup_.spec())) {
      privacy::Ledger of_the_server;
      of_the_server.charge_as(home_, plan_.short_hash(), kSelf);
      charge_the_server(round, of_the_server);
    }
  } catch (const privacy::BudgetSpent& refusal) {
    reply = {};
    reply.abstained = refusal.what();
  } catch (const Interrupted&) {
    home_.forget_uncommitted();
    state_->restore(progress.round);
    throw;
  } catch (const std::exception& error) {
    // It may have come so far because of a record: what is paid stays paid, and nobody hears of it.
    state_->restore(progress.round);
    reply = {};
    reply.failure = first_line(error);
  }
  if (!reply.abstained.empty()) {
    home_.forget_uncommitted();
    state_->restore(progress.round);
    return {.upload = std::nullopt, .skips = true, .why = reply.abstained};
  }
  progress.round = round;
  progress.skipped = !reply.upload && reply.failure.empty();
  if (!is_evaluation(round)) ++progress.participations;
  if (reply.upload) return seal(round, std::move(progress), *reply.upload, releases);

  // Whether a step failed, or training diverged, depends on the records: even silence was paid for.
  if (state_->next()) {
    io::write_safetensors(state_file(round), {.tensors = state_->next()->values(), .metadata = {}});
    progress.state_round = round;
  }
  write_progress(progress);
  home_.commit();
  state_->commit(round);
  return {.upload = std::nullopt, .skips = progress.skipped, .why = reply.failure};
}

// The one that the plan may ask for after its last.
bool Member::is_evaluation(int64_t round) const {
  return setup_.published().evaluation() && round == setup_.spec().rounds + 1;
}

federation::Reply Member::evaluation_reply(const methods::Broadcast& broadcast, privacy::Ledger& ledger) {
  const privacy::ReleaseContext context =
      federation::release_context(setup_.published(), ledger, broadcast.round + 1, client_);
  federation::Reply reply;
  reply.client = client_;
  reply.upload.emplace(
      federation::release_evaluation(setup_, client_, *method_, broadcast, state_->get(client_), context));
  return reply;
}

Outcome Member::seal(int64_t round, Progress progress, const privacy::Upload& upload, const std::string& releases) {
  const auto begin = std::chrono::steady_clock::now();
  SealedUpload made;
  made.round = round;
  made.key = plan_.upload_key(client_, round);
  made.releases = releases;
  made.file = outbox_file(round);
  const std::string bytes = privacy::encode(upload);
  made.bytes = static_cast<int64_t>(bytes.size());
  made.digest = sha256(bytes);
  fault_point("member.worked");
  write_file_atomically(made.file, bytes);
  fault_point("member.upload-written");
  if (state_->next()) {
    io::write_safetensors(state_file(round), {.tensors = state_->next()->values(), .metadata = {}});
    progress.state_round = round;
  }
  fault_point("member.state-written");
  progress.outbox = {
      {"round", round}, {"key", made.key}, {"digest", made.digest}, {"bytes", made.bytes}, {"releases", releases}};
  home_.ledger().set_note(sealed_note(plan_, round), made.digest);
  write_progress(progress);
  home_.commit();
  fault_point("member.sealed");
  state_->commit(round);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return {.upload = std::move(made), .skips = false, .why = "", .sealing_seconds = took.count()};
}

std::optional<SealedUpload> Member::sealed(const Progress& progress) const {
  if (progress.outbox.is_null()) return std::nullopt;
  SealedUpload kept;
  kept.round = progress.outbox.at("round");
  kept.key = progress.outbox.at("key");
  kept.digest = progress.outbox.at("digest");
  kept.bytes = progress.outbox.at("bytes");
  kept.releases = progress.outbox.at("releases");
  kept.file = outbox_file(kept.round);
  if (kept.round != progress.round) return std::nullopt;
  if (!fs::exists(kept.file) || sha256_of_file(kept.file) != kept.digest) {
    fail_user("{} is not what was sealed there; put it back from a backup, or leave the federation",
              kept.file.string());
  }
  return kept;
}

void Member::check_seen(int64_t round, const std::string& digest) const {
  if (round == 0 || home_.ledger().note(sealed_note(plan_, round)) == digest) return;
  fail_user(
      "the server was offered an upload of round {} that the home {} knows nothing of: it is an old copy, which has "
      "forgotten what it has released; put the latest one back. Nothing was sent",
      round, home_.folder().string());
}

void Member::settle(int64_t durable_round) {
  Progress progress = read_progress();
  if (progress.outbox.is_null() || progress.outbox.at("round").get<int64_t>() > durable_round) return;
  const int64_t round = progress.outbox.at("round");
  progress.outbox = nullptr;
  write_progress(progress);
  fault_point("member.settled");
  fs::remove(outbox_file(round));
  for (const auto& entry : fs::directory_iterator(home_.folder() / "states")) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(plan_.short_hash()) && entry.path() != state_file(progress.state_round))
      fs::remove(entry.path());
  }
}

federation::ClientScore Member::evaluate(const methods::Broadcast& broadcast) {
  require_broadcast_like(setup_, first_broadcast_, broadcast);
  privacy::Ledger nothing_leaves;
  federation::ClientRuntime runtime(setup_, client_, *method_, *state_, nothing_leaves);
  try {
    federation::HeldOut held_out(setup_, {client_});
    held_out.global_sample = at::Tensor();  // others' records are elsewhere
    return runtime.evaluate(broadcast, held_out);
  } catch (const c10::Error& error) {
    throw NotAllowed(fmt::format("the server's broadcast does not fit the model: {}", first_line(error)));
  }
}

fs::path Member::outbox_file(int64_t round) const {
  return home_.folder() / "outbox" / fmt::format("{}-{:06}.safetensors", plan_.short_hash(), round);
}

fs::path Member::state_file(int64_t round) const {
  return state_file_of(home_, plan_, round);
}

}  // namespace sotto::member
