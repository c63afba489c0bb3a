#include "library/boundary.h"
#include "methods/catalogue.h"
#include "methods/fedavg.h"
#include "methods/parts/averaging.h"
#include "methods/parts/fine_tuning.h"
#include "methods/parts/requirements.h"
#include "methods/parts/trainer_client.h"
#include "privacy/calibration.h"
#include "privacy/guard.h"

#include <ATen/ATen.h>

#include <fmt/ranges.h>
#include <sotto/method.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace sotto {
namespace {

// Of a method of another program's: those of the method that it is based on, and its own.
struct BothOptions {
  std::any base;
  std::any own;
};

// What is public, as the method that it is based on would see it, with its own options beside it.
struct Outside {
  explicit Outside(const methods::PublicContext& context) : settings(context.spec), facts(context.facts) {
    BothOptions both = context.spec.options_of<BothOptions>();
    settings.options = std::move(both.base);
    own = std::move(both.own);
  }

  methods::PublicContext base() const { return {settings, facts}; }

  methods::RunSettings settings;
  const methods::PublicFacts& facts;
  std::any own;
  const methods::RoundContext* turn = nullptr;  // the server's, while it aggregates
};

}  // namespace

// What a step has at hand, and what becomes of it.
struct Step::Inside {
  const methods::RunSettings& settings;
  methods::LocalTrainer& trainer;
  const data::Records& records;
  const data::Shard& shard;
  const methods::StepContext& context;
  ClientFacts facts;
  Tensors broadcast;
  methods::LocalReport report = {};
  std::optional<privacy::Upload> upload = {};
  bool released = false;
  bool noised = false;
};

struct Bridge {
  static Settings settings(settings::Section& section) { return Settings(&section); }
  static settings::Section& section(const Settings& settings) {
    return *static_cast<settings::Section*>(settings.section_);
  }
  static PublicContext context(const Outside& outside) { return PublicContext(&outside); }
  static const Outside& outside(const PublicContext& context) { return *static_cast<const Outside*>(context.inside_); }
  using StepInside = Step::Inside;
  static Step step(const Outside& outside, StepInside& inside) { return Step(&outside, inside); }
  static Upload upload(const privacy::Upload& upload) { return {&upload, to_public(upload.values())}; }
  static const privacy::Upload& inside(const Upload& upload) {
    return *static_cast<const privacy::Upload*>(upload.inside_);
  }
};

namespace {

using sotto::to_engine;
using sotto::to_public;

ClientFacts to_public(const methods::ClientFacts& client) {
  return {.records = client.records, .participations = client.participations, .epsilon = client.epsilon};
}

Broadcast to_public(const methods::Broadcast& broadcast) {
  return {broadcast.round, to_public(broadcast.values)};
}

methods::Broadcast to_engine(const Broadcast& broadcast) {
  return {broadcast.round, to_engine(broadcast.values)};
}

int64_t numbers_of(const Tensors& tensors) {
  int64_t count = 0;
  for (const auto& [name, value] : tensors) count += value.numel();
  return count;
}

void require_sound(const Channel& channel) {
  if (channel.what.empty()) fail_user("a channel needs a name for what it releases");
  if (channel.like.empty()) fail_user("{}: `like` must show what is released", channel.what);
  if (!channel.in_the_clear.empty()) return;
  const auto require_positive = [&](const char* name, double value) {
    if (!(value > 0 && std::isfinite(value))) fail_user("{}: {} must be above 0, not {}", channel.what, name, value);
  };
  require_positive("bound", channel.bound);
  require_positive("noise_multiplier", channel.noise_multiplier);
  require_positive("divisor", channel.divisor);
  if (!channel.per_record && channel.divisor != 1) {
    fail_user("{}: divisor is for releases per record: leave it out", channel.what);
  }
}

privacy::GuardedRelease request_of(const Channel& channel) {
  return {.what = channel.what,
          .key = {},
          .bound = channel.bound,
          .noise_multiplier = channel.noise_multiplier,
          .per_record = channel.per_record,
          .divisor = channel.divisor};
}

privacy::GroupwiseGaussian mechanism_of(const Channel& channel, const privacy::Neighbours& neighbours) {
  return privacy::GroupwiseGaussian::calibrated(
      channel.noise_multiplier, {{.name = channel.what,
                                  .tensors = static_cast<int64_t>(channel.like.size()),
                                  .coordinates = numbers_of(channel.like),
                                  .sensitivity = privacy::sensitivity_of(request_of(channel), neighbours)}});
}

privacy::Neighbours neighbours_of(const Channel& channel, const methods::RunSettings& settings) {
  if (!settings.privacy) {
    fail_user("'{}' adds noise to what it releases and needs [privacy] with epsilon, delta and adjacency",
              settings.method);
  }
  if (channel.per_record && settings.privacy->unit == privacy::Unit::kClient) {
    fail_user("{}: [privacy] protects whole clients, and clipping each record bounds one record only", channel.what);
  }
  return settings.privacy->neighbours();
}

privacy::Channel to_engine(const Channel& channel, const methods::RunSettings& settings) {
  require_sound(channel);
  const std::string how_often = channel.times == 1 ? "once" : fmt::format("{} times", channel.times);
  if (!channel.in_the_clear.empty()) {
    return privacy::Channel::in_the_clear(channel.what, channel.in_the_clear).times(channel.times, how_often);
  }
  const privacy::Neighbours neighbours = neighbours_of(channel, settings);
  const privacy::GroupwiseGaussian mechanism = mechanism_of(channel, neighbours);
  privacy::Channel released =
      privacy::Channel::gaussian(channel.what, privacy::Observer::kServer, mechanism, neighbours)
          .times(channel.times, how_often)
          .reaching({.coordinates = mechanism.coordinates(),
                     .bound = channel.bound,
                     .noise_stddev = mechanism.noise_stddev(0),
                     .summands = static_cast<double>(channel.times * methods::expected_cohort(settings))});
  for (const auto& [name, value] : channel.declared) released.declaring(name, value);
  return released;
}

// What was computed must look as the channel says: names and shapes are public.
NamedTensors computed_for(const Channel& channel, const Tensors& values) {
  const auto refuse = [&](const std::string& why) { fail_user("{}: {}", channel.what, why); };
  if (values.size() != channel.like.size()) {
    refuse(fmt::format("{} tensors were computed, and the channel shows {}", values.size(), channel.like.size()));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const auto& [name, value] = values[i];
    const auto& [shown_name, shown] = channel.like[i];
    if (name != shown_name)
      refuse(fmt::format("tensor '{}' was computed where the channel shows '{}'", name, shown_name));
    const auto sizes = channel.per_record && value.dim() > 0 ? value.sizes().slice(1) : value.sizes();
    if (!value.defined() || sizes != shown.sizes()) {
      refuse(fmt::format("tensor '{}' is [{}], and the channel shows [{}]", name, fmt::join(value.sizes(), ", "),
                         fmt::join(shown.sizes(), ", ")));
    }
    if (!at::isFloatingType(value.scalar_type()))
      refuse(fmt::format("tensor '{}' must hold floating-point numbers", name));
  }
  NamedTensors floats;
  for (const auto& [name, value] : values) {
    floats.push_back({name, value.detach().to(at::kFloat, /*non_blocking=*/false, /*copy=*/true).contiguous()});
  }
  return floats;
}

methods::ReleasePlan plan_of(const Method& method, const Outside& outside, const methods::ClientFacts& client) {
  methods::ReleasePlan plan;
  const auto channels = for_engine([&] { return method.plan(Bridge::context(outside), to_public(client)); });
  for (const Channel& channel : channels) plan.push_back(to_engine(channel, outside.settings));
  return plan;
}

// By the channels of a client of which the least is declared: what they look like is the same for all.
privacy::UploadShape shape_of(const Method& method, const Outside& outside) {
  const ClientFacts client{.records = std::max<int64_t>(outside.facts.least_records, 1),
                           .participations = std::max<int64_t>(outside.facts.most_participations, 1),
                           .epsilon = outside.settings.privacy ? outside.settings.privacy->least_budget() : 0};
  const auto channels = for_engine([&] { return method.plan(Bridge::context(outside), client); });
  privacy::UploadShape shape;
  const auto add = [&](privacy::TensorShape tensor) {
    const auto same = [&](const privacy::TensorShape& other) { return other.name == tensor.name; };
    if (std::none_of(shape.tensors.begin(), shape.tensors.end(), same)) shape.tensors.push_back(std::move(tensor));
  };
  for (const Channel& channel : channels) {
    for (const auto& [name, value] : channel.like) {
      add({.name = name, .sizes = value.sizes().vec(), .required = channels.size() == 1});
    }
    for (const auto& [name, value] : channel.declared) {
      privacy::TensorShape number = methods::number_shape(name);
      number.required = channels.size() == 1;
      add(std::move(number));
    }
  }
  return shape;
}

// A client whose step is another program's.
class OutsideClient : public methods::TrainerClient {
 public:
  OutsideClient(const methods::ClientContext& context, const Method& method)
      : TrainerClient(context), method_(method), outside_(context) {}

  methods::StepResult step(const methods::Broadcast& broadcast, const data::Shard& shard, privacy::PrivateState& state,
                           const methods::StepContext& context) override {
    select(broadcast, state);
    Bridge::StepInside inside{.settings = outside_.settings,
                              .trainer = trainer_,
                              .records = records_,
                              .shard = shard,
                              .context = context,
                              .facts = to_public(context.own),
                              .broadcast = to_public(broadcast.values)};
    Step step = Bridge::step(outside_, inside);
    for_engine([&] { method_.step(step); });
    const bool diverged = inside.report.diverged;
    if (!diverged) keep_personal(state);
    // Whether noise arrives must not depend on how training went.
    if (diverged && inside.noised) inside.report = {.noise_norm = inside.report.noise_norm};
    return {.upload = std::move(inside.upload), .report = inside.report};
  }

 private:
  const Method& method_;
  Outside outside_;
};

// A client of the method that another program's is based on, with the options that it knows.
class InheritedClient : public methods::ClientMethod {
 public:
  InheritedClient(const methods::ClientContext& context, const methods::MethodEntry& base)
      : outside_(context), client_(base.make_client({outside_.base(), context.records})) {}

  methods::StepResult step(const methods::Broadcast& broadcast, const data::Shard& shard, privacy::PrivateState& state,
                           const methods::StepContext& context) override {
    return client_->step(broadcast, shard, state, context);
  }
  void select(const methods::Broadcast& broadcast, const privacy::PrivateState& state) override {
    client_->select(broadcast, state);
  }
  at::Tensor predict(const at::Tensor& x) override { return client_->predict(x); }
  at::Tensor features(const at::Tensor& x) override { return client_->features(x); }
  NamedTensors selected_weights() const override { return client_->selected_weights(); }

 private:
  Outside outside_;
  std::unique_ptr<methods::ClientMethod> client_;
};

class OutsideServer : public methods::ServerMethod {
 public:
  OutsideServer(const methods::PublicContext& context, const Method& method)
      : outside_(context), server_(for_engine([&] { return method.make_server(Bridge::context(outside_)); })) {
    if (!server_) fail_user("'{}': make_server made no server", method.name);
  }

  methods::Broadcast open() override {
    return for_engine([&] { return to_engine(server_->open()); });
  }
  void accept(const privacy::Upload& upload) override {
    for_engine([&] { server_->accept(Bridge::upload(upload)); });
  }
  methods::Broadcast aggregate(const methods::RoundContext& context) override {
    outside_.turn = &context;
    return for_engine([&] { return to_engine(server_->aggregate(context.round())); });
  }
  NamedTensors state() const override {
    return for_engine([&] { return to_engine(server_->state()); });
  }
  void restore(const methods::Broadcast& last, const NamedTensors& state) override {
    for_engine([&] { server_->restore(to_public(last), to_public(state)); });
  }

 private:
  Outside outside_;
  std::unique_ptr<Server> server_;
};

// The server of the method that another program's is based on, with the options that it knows.
class InheritedServer : public methods::ServerMethod {
 public:
  InheritedServer(const methods::PublicContext& context, const methods::MethodEntry& base)
      : outside_(context), server_(base.make_server(outside_.base())) {}

  methods::Broadcast open() override { return server_->open(); }
  void accept(const privacy::Upload& upload) override { server_->accept(upload); }
  methods::Broadcast aggregate(const methods::RoundContext& context) override { return server_->aggregate(context); }
  NamedTensors state() const override { return server_->state(); }
  void restore(const methods::Broadcast& last, const NamedTensors& state) override { server_->restore(last, state); }

 private:
  Outside outside_;
  std::unique_ptr<methods::ServerMethod> server_;
};

// A server of the engine's inside one of another program's.
class EngineServer : public Server {
 public:
  EngineServer(const Outside& outside, std::unique_ptr<methods::ServerMethod> server)
      : outside_(outside), server_(std::move(server)) {}

  Broadcast open() override {
    return for_program([&] { return to_public(server_->open()); });
  }
  void accept(const Upload& upload) override {
    for_program([&] { server_->accept(Bridge::inside(upload)); });
  }
  Broadcast aggregate(int64_t round) override {
    return for_program([&] {
      if (outside_.turn == nullptr || outside_.turn->round() != round) {
        fail_user("round {} is not the one in progress", round);
      }
      return to_public(server_->aggregate(*outside_.turn));
    });
  }
  Tensors state() const override {
    return for_program([&] { return to_public(server_->state()); });
  }
  void restore(const Broadcast& last, const Tensors& state) override {
    for_program([&] { server_->restore(to_engine(last), to_engine(state)); });
  }

 private:
  const Outside& outside_;
  std::unique_ptr<methods::ServerMethod> server_;
};

void require_complete(const Method& method) {
  if (method.name.empty()) fail_user("a method needs a name");
  if (method.what.empty()) fail_user("'{}': say in one line what it does", method.name);
  if (static_cast<bool>(method.step) != static_cast<bool>(method.plan)) {
    fail_user("'{}': a step of its own needs a plan of its own, and the other way round", method.name);
  }
  if (!method.step && !method.make_server && !method.read_options) {
    fail_user("'{}' is '{}' under another name: give it a step, a server or options", method.name, method.based_on);
  }
}

// A server of another program's is not trusted with values without noise: it could send them on as they are.
void refuse_trust(const methods::ReleasePlan& plan, const Method& method) {
  for (const privacy::Channel& channel : plan) {
    if (channel.terms().mechanism == privacy::kTrustedMechanism) {
      fail_user("'{}' hands its server values without noise, and a server outside of Sotto is not trusted with them",
                method.based_on);
    }
  }
}

methods::MethodEntry entry_of(Method description) {
  const methods::MethodEntry base = methods::find_method(description.based_on);
  const auto method = std::make_shared<const Method>(std::move(description));
  methods::MethodEntry entry = base;
  entry.name = method->name;
  entry.what = method->what;
  entry.citation = method->citation;
  entry.read_options = [base, method](settings::Section& section) {
    BothOptions both{.base = base.read_options(section), .own = {}};
    if (method->read_options) {
      Settings own = Bridge::settings(section);
      both.own = for_engine([&] { return method->read_options(own); });
    }
    return std::any(std::move(both));
  };
  entry.plan = [base, method](const methods::PublicContext& context, const methods::ClientFacts& client) {
    const Outside outside(context);
    if (method->plan) return plan_of(*method, outside, client);
    methods::ReleasePlan plan = base.plan(outside.base(), client);
    if (method->make_server) refuse_trust(plan, *method);
    return plan;
  };
  entry.broadcast_shape = {};
  if (base.broadcast_shape && !method->make_server) {
    entry.broadcast_shape = [base](const methods::PublicContext& context, methods::BroadcastShape opening,
                                   const methods::Broadcast& broadcast) {
      return base.broadcast_shape(Outside(context).base(), std::move(opening), broadcast);
    };
  }
  entry.upload_shape = [base, method](const methods::PublicContext& context, const methods::Broadcast& broadcast) {
    const Outside outside(context);
    return method->plan ? shape_of(*method, outside) : base.upload_shape(outside.base(), broadcast);
  };
  entry.make_server = [base, method](const methods::PublicContext& context) -> std::unique_ptr<methods::ServerMethod> {
    if (method->make_server) return std::make_unique<OutsideServer>(context, *method);
    return std::make_unique<InheritedServer>(context, base);
  };
  if (!method->step) {
    entry.make_client = [base,
                         method](const methods::ClientContext& context) -> std::unique_ptr<methods::ClientMethod> {
      return std::make_unique<InheritedClient>(context, base);
    };
    return entry;  // fine-tuning comes with the clients
  }
  entry.family = {};
  entry.units = {};
  entry.observers = {};
  entry.variants = {methods::Variant::kSound};
  entry.uses_model = true;
  entry.personal = methods::has_personal_part;
  entry.personal_is_noisy = {};
  entry.global = [](const methods::RunSettings& settings) { return !methods::has_personal_part(settings); };
  entry.make_client = [method](const methods::ClientContext& context) -> std::unique_ptr<methods::ClientMethod> {
    return std::make_unique<OutsideClient>(context, *method);
  };
  return methods::with_fine_tuning(std::move(entry));
}

}  // namespace

double Settings::number(const std::string& key, double otherwise, double least, double most) {
  return for_program([&] { return Bridge::section(*this).number(key, otherwise, settings::between(least, most)); });
}

int64_t Settings::integer(const std::string& key, int64_t otherwise, int64_t least) {
  return for_program(
      [&] { return Bridge::section(*this).integer(key, otherwise, settings::at_least(static_cast<double>(least))); });
}

bool Settings::flag(const std::string& key, bool otherwise) {
  return for_program([&] { return Bridge::section(*this).boolean(key, otherwise); });
}

std::string Settings::word(const std::string& key, const std::string& otherwise,
                           const std::vector<std::string>& choices) {
  return for_program([&] { return Bridge::section(*this).one_of(key, otherwise, choices); });
}

const std::any& PublicContext::own_options() const {
  return Bridge::outside(*this).own;
}

int64_t PublicContext::clients() const {
  return Bridge::outside(*this).settings.data.clients;
}

int64_t PublicContext::clients_per_round() const {
  return methods::expected_cohort(Bridge::outside(*this).settings);
}

int64_t PublicContext::rounds() const {
  return Bridge::outside(*this).settings.rounds;
}

int64_t PublicContext::classes() const {
  return Bridge::outside(*this).facts.classes();
}

Tensors PublicContext::initial_model() const {
  return for_program(
      [&] { return to_public(clone(methods::initial_model(Bridge::outside(*this).base())->shared_parameters())); });
}

double PublicContext::noise_multiplier(const ClientFacts& client, int64_t releases) const {
  return for_program([&] {
    const auto& terms = Bridge::outside(*this).settings.privacy;
    if (!terms) fail_user("without [privacy] there is no budget that noise could keep to");
    return privacy::noise_multiplier_for(client.epsilon, terms->delta, std::max<int64_t>(releases, 1), 1.0,
                                         terms->adjacency);
  });
}

int64_t Step::round() const {
  return step_.context.release.round;
}

const ClientFacts& Step::facts() const {
  return step_.facts;
}

const Tensors& Step::broadcast() const {
  return step_.broadcast;
}

at::Tensor Step::parameters() const {
  return step_.trainer.flat().shared();
}

Tensors Step::model() const {
  Tensors values;
  for (const auto& [name, value] : step_.trainer.shared()) values.emplace_back(name, value.detach());
  return values;
}

std::pair<at::Tensor, at::Tensor> Step::records() const {
  data::Batch batch;
  data::gather(step_.records, step_.shard.train, batch);
  return {batch.x, batch.y};
}

at::Tensor Step::logits(const at::Tensor& x) const {
  return step_.trainer.model().logits(x);
}

Training Step::train(const GradientTerm& extra) {
  return for_program([&]() -> Training {
    methods::LocalTrainer& trainer = step_.trainer;
    const NamedTensors shared = clone(trainer.shared());
    const NamedTensors personal = clone(trainer.personal());
    methods::LocalTrainer::GradientTerm term;
    if (extra) {
      term = [&](const models::FlatParameters& parameters) {
        at::Tensor gradient = parameters.shared_gradient();
        for_engine([&] { extra(parameters.shared(), gradient); });
      };
    }
    step_.report = trainer.train(step_.records, step_.shard, step_.context, term);
    if (step_.report.diverged) {
      const at::NoGradGuard no_grad;
      copy_values(trainer.shared(), shared);
      copy_values(trainer.personal(), personal);
    }
    return {.loss = step_.report.loss, .samples = step_.report.samples, .diverged = step_.report.diverged};
  });
}

void Step::release(const Channel& channel, const std::function<Tensors()>& compute) {
  for_program([&] {
    if (std::exchange(step_.released, true)) fail_user("{}: a step releases once, and this is another", channel.what);
    const privacy::Channel released = to_engine(channel, step_.settings);
    const auto values = [&] { return computed_for(channel, for_engine(compute)); };
    if (!channel.in_the_clear.empty()) {
      if (step_.report.diverged) return;
      step_.upload = released.release_clear(step_.context.release, [&] {
        NamedTensors all = values();
        for (const auto& [name, value] : channel.declared) all.push_back({name, at::scalar_tensor(value, at::kDouble)});
        return privacy::Contribution(std::move(all));
      });
      return;
    }
    const privacy::Neighbours neighbours = neighbours_of(channel, step_.settings);
    if (channel.per_record) {
      methods::require_separate_records(step_.trainer.model());
    } else {
      methods::require_no_batch_statistics(step_.trainer.model());
    }
    step_.noised = true;
    step_.upload = released.release(step_.context.release,
                                    [&] { return privacy::bounded(request_of(channel), neighbours, values()); });
    step_.report.noise_norm = mechanism_of(channel, neighbours).noise_norm();
  });
}

Server::~Server() = default;

Tensors Server::state() const {
  return {};
}

std::unique_ptr<Server> averaging_server(const PublicContext& context) {
  const Outside& outside = Bridge::outside(context);
  return for_program(
      [&] { return std::make_unique<EngineServer>(outside, methods::make_averaging_server(outside.base())); });
}

std::unique_ptr<Server> updating_server(const PublicContext& context) {
  const Outside& outside = Bridge::outside(context);
  return for_program([&] {
    return std::make_unique<EngineServer>(
        outside,
        methods::make_updating_server_from(clone(methods::initial_model(outside.base())->shared_parameters())));
  });
}

void add_method(Method method) {
  for_program([&] {
    require_complete(method);
    methods::add_method(entry_of(std::move(method)));
  });
}

}  // namespace sotto
