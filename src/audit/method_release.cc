#include "audit/method_release.h"

#include "base/error.h"
#include "base/progress.h"
#include "federation/cohort.h"
#include "privacy/ledger.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace sotto::audit {
namespace {

constexpr double kDefaultDelta = 1e-5;
constexpr uint64_t kPilotSeed = 0x5eed;

// One world: its records, and who holds which.
struct Records {
  data::Records train;
  data::Shard shard;       // of the audited client
  bool takes_part = true;  // false where the whole client is not there
};

// The records as floats: rows that the client does not hold are never read, and their memory never touched.
data::Records floating_copy(const data::Records& original, const at::Tensor& rows) {
  data::Records copy = original;
  copy.y = original.y.clone();
  data::Batch batch;
  data::gather(original, rows, batch);
  copy.x = at::empty(original.x.sizes().vec(), batch.x.options());
  copy.x.index_copy_(0, rows, batch.x);
  return copy;
}

class Worlds {
 public:
  Worlds(std::shared_ptr<const federation::Setup> setup, const ReleaseOptions& options, Canary canary, bool blanks)
      : setup_(std::move(setup)),
        client_(options.client),
        canary_(std::move(canary)),
        blanks_(blanks),
        others_(options.others) {
    const bool whole_client = setup_->spec().privacy && setup_->spec().privacy->unit == privacy::Unit::kClient;
    for (const World world : {World::kWithout, World::kWith}) make(world, whole_client);
    broadcast_ =
        options.broadcast ? *options.broadcast : setup_->method().make_server(setup_->public_context())->open();
  }

  const federation::Setup& setup() const { return *setup_; }
  int64_t client() const { return client_; }
  const std::string& canary() const { return canary_.name; }
  const Records& records(World world) const { return records_[world == World::kWith ? 1 : 0]; }
  const methods::Broadcast& broadcast() const { return broadcast_; }

  methods::ClientContext client_context(World world) const { return {setup_->public_context(), records(world).train}; }

  static privacy::ReleaseContext release_context(privacy::Ledger& ledger, int64_t client, uint64_t seed) {
    return {.ledger = ledger, .round = 1, .client = client, .seed = seed};
  }

  // What is declared of a client is the same in both worlds.
  methods::StepContext step_context(privacy::Ledger& ledger, int64_t client, uint64_t seed) const {
    methods::StepContext context{.seed = setup_->spec().seed, .release = release_context(ledger, client, seed)};
    context.own = setup_->facts_of(client);
    context.own.participations = std::max<int64_t>(1, context.own.participations);
    return context;
  }

 private:
  void make(World world, bool whole_client) {
    Records& records = records_[world == World::kWith ? 1 : 0];
    records.shard = setup_->partition().shard(client_);
    const at::Tensor rows = records.shard.train.contiguous();
    records.train = floating_copy(setup_->dataset().train, rows);
    data::Records& train = records.train;
    const Edit& edit = world == World::kWith ? canary_.with : canary_.without;
    std::vector<int64_t> kept;
    for (int64_t i = 0; i < rows.size(0); ++i) {
      const int64_t row = rows[i].item<int64_t>();
      const bool edited = whole_client || i == 0;
      const Record before{train.x[row].clone(), train.y[row].item<int64_t>()};
      std::optional<Record> after = edited ? edit(before) : other(before);
      if (!after && whole_client) records.takes_part = false;
      if (!after && blanks_) after = blank(before);
      if (!after) continue;
      kept.push_back(row);
      train.x[row].copy_(after->x);
      train.y[row] = after->label;
    }
    if (records.takes_part) records.shard.train = at::tensor(kept, at::kLong);
  }

  Record other(const Record& record) const {
    switch (others_) {
      case Others::kAsTheyAre:
        break;
      case Others::kBlank:
        return blank(record);
      case Others::kZero:
        return {at::zeros_like(record.x), record.label};
    }
    return record;
  }

  std::shared_ptr<const federation::Setup> setup_;
  int64_t client_;
  Canary canary_;
  bool blanks_;
  Others others_;
  Records records_[2];
  methods::Broadcast broadcast_;
};

// One thread's share of the trials: clients of both worlds, and ledgers to pay with.
class UploadDraw {
 public:
  explicit UploadDraw(std::shared_ptr<const Worlds> worlds) : worlds_(std::move(worlds)) {
    for (const World world : {World::kWithout, World::kWith}) {
      Side& side = sides_[world == World::kWith ? 1 : 0];
      side.client = worlds_->setup().method().make_client(worlds_->client_context(world));
      side.ledger = std::make_unique<privacy::Ledger>();
      side.ledger->rehearse();
    }
  }

  NamedTensors operator()(World world, uint64_t seed) {
    Side& side = sides_[world == World::kWith ? 1 : 0];
    privacy::PrivateState state;
    const data::Shard& shard = worlds_->records(world).shard;
    const auto result = side.client->step(worlds_->broadcast(), shard, state,
                                          worlds_->step_context(*side.ledger, worlds_->client(), seed));
    return result.upload ? clone(result.upload->values()) : NamedTensors();
  }

  const privacy::Ledger& ledger(World world) const { return *sides_[world == World::kWith ? 1 : 0].ledger; }

 private:
  struct Side {
    std::unique_ptr<methods::ClientMethod> client;
    std::unique_ptr<privacy::Ledger> ledger;
  };
  std::shared_ptr<const Worlds> worlds_;
  Side sides_[2];
};

// The server's release of a round in which the audited client takes part or not; the others are the same.
class BroadcastDraw {
 public:
  explicit BroadcastDraw(std::shared_ptr<const Worlds> worlds) : worlds_(std::move(worlds)) {
    const federation::Setup& setup = worlds_->setup();
    cohort_ = federation::sample_cohort(setup.spec(), 1);
    if (std::find(cohort_.begin(), cohort_.end(), worlds_->client()) == cohort_.end()) {
      cohort_.push_back(worlds_->client());
    }
    for (const World world : {World::kWithout, World::kWith}) {
      Side& side = sides_[world == World::kWith ? 1 : 0];
      side.server = setup.method().make_server(setup.public_context());
      side.ledger = std::make_unique<privacy::Ledger>();
      side.ledger->rehearse();
      const auto own = setup.method().make_client(worlds_->client_context(world));
      const auto others = setup.method().make_client(setup.client_context());
      for (const int64_t client : cohort_) {
        const bool audited = client == worlds_->client();
        if (audited && !worlds_->records(world).takes_part) continue;
        privacy::PrivateState state;
        const data::Shard shard = audited ? worlds_->records(world).shard : setup.partition().shard(client);
        auto result = (audited ? own : others)
                          ->step(worlds_->broadcast(), shard, state,
                                 worlds_->step_context(*side.ledger, client, setup.spec().seed));
        if (result.upload) side.uploads.push_back(std::move(*result.upload));
      }
    }
  }

  NamedTensors operator()(World world, uint64_t seed) {
    Side& side = sides_[world == World::kWith ? 1 : 0];
    side.server->restore(worlds_->broadcast(), {});
    for (const privacy::Upload& upload : side.uploads) side.server->accept(upload);
    return side.server->aggregate({Worlds::release_context(*side.ledger, privacy::kEveryone, seed), cohort_}).values;
  }

  const privacy::Ledger& ledger(World world) const { return *sides_[world == World::kWith ? 1 : 0].ledger; }

 private:
  struct Side {
    std::unique_ptr<methods::ServerMethod> server;
    std::unique_ptr<privacy::Ledger> ledger;
    std::vector<privacy::Upload> uploads;
  };
  std::shared_ptr<const Worlds> worlds_;
  std::vector<int64_t> cohort_;
  Side sides_[2];
};

template <typename Kind>
Draw draw_of(const std::shared_ptr<Kind>& draw) {
  return [draw](World world, uint64_t seed) { return (*draw)(world, seed); };
}

// What a release is made of, if that is Gaussian steps.
std::optional<privacy::Steps> gaussian_steps(const privacy::Event& event) {
  const bool known = event.mechanism == privacy::kGaussianMechanism && event.why_unproven.empty();
  if (!known || !(event.noise_scale > 0 && event.sensitivity > 0)) return std::nullopt;
  privacy::Step step =
      privacy::Step::gaussian(event.noise_scale / event.sensitivity, event.sampling_rate, event.neighbours.adjacency);
  step.batches = event.batches;
  return privacy::Steps{step, event.steps};
}

template <typename Kind>
class CaseMaker {
 public:
  CaseMaker(std::shared_ptr<const federation::Setup> setup, const ReleaseOptions& options)
      : setup_(std::move(setup)),
        options_(options),
        observer_(
            settings::word(setup_->spec().privacy ? setup_->spec().privacy->observer : privacy::Observer::kServer)) {}

  Case make() const {
    const auto worlds = best();
    const auto draw = std::make_shared<Kind>(worlds);
    const Draw first = draw_of(draw);
    first(World::kWithout, kPilotSeed);
    first(World::kWith, kPilotSeed);
    Case result{
        .name = setup_->spec().method, .variant = settings::word(setup_->spec().variant), .what = worlds->canary()};
    result.observer = observer_;
    result.delta = setup_->spec().privacy ? setup_->spec().privacy->delta : kDefaultDelta;
    bool gaussian = true, amplified = false;
    std::string what;
    for (const World world : {World::kWithout, World::kWith}) {
      privacy::Tally tally;
      result.family.clear();
      for (const privacy::Event& event : draw->ledger(world).events()) {
        const bool concerns = event.client == options_.client || event.client == privacy::kEveryone;
        if (!concerns || !privacy::is_seen_by(event, observer_)) continue;
        tally.add(event);
        what = event.what;
        const auto steps = gaussian_steps(event);
        gaussian = gaussian && steps;
        amplified = amplified || (steps && steps->step.amplified());
        if (steps) result.family.push_back(*steps);
      }
      if (tally.empty()) continue;
      result.claimed = std::max(result.claimed, tally.claimed(result.delta));
      result.proven = std::max(result.proven, tally.proven(result.delta));
    }
    if (what.empty()) fail_user("method.name: '{}' releases nothing that could be audited", setup_->spec().method);
    result.gaussian = gaussian && !amplified;
    if (!gaussian || !amplified) result.family.clear();
    result.what = fmt::format("{}; {}", what, worlds->canary());
    result.make_draw = [worlds]() -> Draw { return draw_of(std::make_shared<Kind>(worlds)); };
    return result;
  }

 private:
  std::shared_ptr<const Worlds> best() const {
    const privacy::Adjacency adjacency =
        setup_->spec().privacy ? setup_->spec().privacy->adjacency : privacy::Adjacency::kReplace;
    std::shared_ptr<const Worlds> found;
    double widest = -1;
    const std::vector<Canary> candidates = canaries(setup_->dataset(), adjacency);
    Progress progress("canaries", std::ssize(candidates));
    for (const Canary& canary : candidates) {
      progress.advance();
      if (options_.canary && canary.name != *options_.canary) continue;
      const auto worlds = usable(canary);
      if (!worlds) continue;
      const double width = separation(draw_of(std::make_shared<Kind>(worlds)), options_.pilots, kPilotSeed);
      if (width <= widest) continue;
      widest = width;
      found = worlds;
      if (std::isinf(width)) break;
    }
    if (!found) fail_user("method.name: '{}' releases nothing that could be audited", setup_->spec().method);
    return found;
  }

  // Under zero-out a record that is not there leaves a blank, which only floats can be and which some methods diverge
  // on; then, and under add-remove, the shard is one record shorter.
  std::shared_ptr<const Worlds> usable(const Canary& canary) const {
    const bool floats =
        setup_->dataset().kind == data::Kind::kImages || setup_->dataset().kind == data::Kind::kFeatures;
    const bool zero_out = setup_->spec().privacy && setup_->spec().privacy->adjacency == privacy::Adjacency::kZeroOut;
    for (const bool blanks : {true, false}) {
      if (blanks && !(floats && zero_out)) continue;
      const auto worlds = std::make_shared<const Worlds>(setup_, options_, canary, blanks);
      Kind draw(worlds);
      if (!draw(World::kWithout, kPilotSeed).empty() && !draw(World::kWith, kPilotSeed).empty()) return worlds;
    }
    return nullptr;
  }

  std::shared_ptr<const federation::Setup> setup_;
  ReleaseOptions options_;
  std::string observer_;
};

}  // namespace

Case release_case(const std::shared_ptr<const federation::Setup>& setup, const ReleaseOptions& options) {
  if (options.client < 0 || options.client >= setup->spec().data.clients) {
    fail_user("--client {}: there are clients 0 to {}", options.client, setup->spec().data.clients - 1);
  }
  const bool at_server = setup->spec().privacy && setup->spec().privacy->trusts_server();
  return at_server ? CaseMaker<BroadcastDraw>(setup, options).make() : CaseMaker<UploadDraw>(setup, options).make();
}

}  // namespace sotto::audit
