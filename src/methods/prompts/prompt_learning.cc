#include "methods/prompts/prompt_learning.h"

#include "base/error.h"
#include "methods/parts/averaging.h"
#include "methods/parts/requirements.h"
#include "privacy/calibration.h"
#include "privacy/dpsgd/noisy_steps.h"
#include "privacy/outer_products.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace sotto::methods {
namespace {

constexpr const char* kPrompts = "prompts";                 // what a client releases, local and global
constexpr const char* kLocalPrompt = "local prompt";        // what it releases where the server is trusted
constexpr const char* kGlobalGradient = "global gradient";  // what it hands to a trusted server
constexpr const char* kGlobalPrompt = "global prompt";      // what that server releases
constexpr const char* kTextFeatures = "text features";
constexpr const char* kGlobal = "global";

// Who adds the noise.
enum class Noise { kNobody, kClients, kServerToo };

// What holds for every client of a run.
struct Terms {
  PromptOptions options;
  Noise noise = Noise::kNobody;
  bool as_printed = false;
  privacy::Neighbours neighbours = {};
  double server_multiplier = 0;  // sound, of the trusted server and of the clients beside it
  double printed_stddev = 0;     // as printed, of a client's u, v and of the server's sum
  double global_lr = 0;
  bool everyone = false;  // every client takes part in every round

  bool trusts_server() const { return noise == Noise::kServerToo; }
  // Batch means are bounded as a whole: one record may turn one round.
  privacy::Adjacency bounded_under() const { return as_printed ? privacy::Adjacency::kReplace : neighbours.adjacency; }
};

void require_plain_descent(const FederationOptions& federation) {
  if (!federation.plain_descent()) {
    fail_user(
        "prompts are learnt by plain descent: leave federation.optimizer, momentum and weight_decay at their "
        "defaults");
  }
}

Terms terms_of(const PublicContext& context) {
  const RunSettings& spec = context.spec;
  Terms terms{.options = spec.options_of<PromptOptions>()};
  require_plain_descent(spec.federation);
  if (context.facts.kind != data::Kind::kFeatures) {
    fail_user(
        "method {} learns from image features that are computed once: set data.features to the encoder's (\"{}\")",
        spec.method, terms.options.encoder == "resnet50-minilm" ? "resnet50" : terms.options.encoder);
  }
  terms.global_lr = terms.options.global_lr > 0 ? terms.options.global_lr : spec.federation.lr;
  terms.everyone = expected_cohort(spec) == spec.data.clients;
  if (spec.as_printed()) require_privacy(spec, privacy::Unit::kRecord);
  if (!spec.privacy || terms.options.in_the_clear) return terms;
  const privacy::PrivacyTerms& privacy = require_privacy(spec, privacy::Unit::kRecord);
  terms.neighbours = privacy.neighbours();
  terms.noise = privacy.trusts_server() ? Noise::kServerToo : Noise::kClients;
  terms.as_printed = spec.as_printed();
  if (terms.as_printed && terms.options.sampling == privacy::Sampling::kPoisson) {
    fail_user("method.batches: '{}' has disjoint batches in its paper; leave it out, or set variant = \"sound\"",
              spec.method);
  }
  if (terms.trusts_server()) {
    if (!terms.as_printed && !terms.options.clip_at_prompt) {
      fail_user(
          "method.clip_at: a trusted server adds up gradients of the global prompt, which must be bounded there; set "
          "clip_at = \"prompt\", or privacy.observer = \"server\"");
    }
    if (spec.federation.local_epochs != 1 || terms.options.sampling == privacy::Sampling::kPoisson) {
      fail_user(
          "a trusted server counts every record once a round: set federation.local_epochs = 1 and method.batches = "
          "\"disjoint\"");
    }
  }
  const int64_t most = std::max<int64_t>(1, context.facts.most_participations);
  if (terms.as_printed) {
    terms.printed_stddev = terms.options.clip / static_cast<double>(spec.federation.batch) *
                           std::sqrt(static_cast<double>(spec.rounds) * std::log(1 / privacy.delta)) /
                           privacy.least_budget();
  } else if (terms.trusts_server()) {
    const int64_t parts = terms.options.shape.local == LocalPrompt::kNone ? 1 : 2;
    terms.server_multiplier = privacy::noise_multiplier_for(privacy.least_budget(), privacy.delta, parts * most, 1.0,
                                                            terms.neighbours.adjacency);
  }
  return terms;
}

double sampling_rate(const PublicContext& context) {
  return std::min(1.0,
                  static_cast<double>(context.spec.federation.batch) / std::max(1.0, context.facts.average_records));
}

PromptLearner learner_of(const PublicContext& context, const Terms& terms) {
  return make_prompt_learner(terms.options, context.facts.class_names, context.facts.task.record_shape.front());
}

// What is bounded and noised in a step at the client: names and sizes.
struct Part {
  std::string name;
  int64_t tensors = 0;
  int64_t coordinates = 0;
};

std::vector<Part> parts_of(const Terms& terms, const PromptLearner& learner) {
  const bool local = learner.has_local(), global = !terms.trusts_server();
  if (!terms.as_printed) {
    if (!terms.options.clip_at_prompt) return {{kTextFeatures, 1, learner.feature_coordinates()}};
    const int64_t tensors = std::ssize(learner.parameter_shapes()) - (global ? 0 : 1);
    return {{kPrompts, tensors, learner.prompt_coordinates(local, global)}};
  }
  std::vector<Part> parts;
  for (const NamedTensor& shape : learner.parameter_shapes()) {
    if (shape.name == kGlobal && !global) continue;
    parts.push_back({shape.name, 1, shape.value.numel()});
  }
  return parts;
}

std::vector<privacy::ClipRule> rules_of(const Terms& terms, const std::vector<Part>& parts) {
  std::vector<privacy::ClipRule> rules;
  for (const Part& part : parts) rules.push_back({part.name, part.tensors, terms.options.clip});
  return rules;
}

privacy::GroupwiseGaussian mechanism_of(const Terms& terms, const std::vector<Part>& parts, double multiplier) {
  std::vector<privacy::Group> groups;
  for (const Part& part : parts) {
    groups.push_back({part.name, part.tensors, part.coordinates,
                      privacy::sum_sensitivity(terms.options.clip, terms.bounded_under())});
  }
  if (terms.as_printed) {
    const std::vector<double> stddevs(groups.size(), terms.printed_stddev);
    return privacy::GroupwiseGaussian::with_stddevs(std::move(groups), stddevs);
  }
  return privacy::GroupwiseGaussian::calibrated(multiplier, std::move(groups));
}

// How one client's steps are noised.
privacy::NoisySteps steps_of(const PublicContext& context, const Terms& terms, const PromptLearner& learner,
                             const ClientFacts& client) {
  privacy::DescentPlan plan;
  plan.records = client.records;
  plan.batch = context.spec.federation.batch;
  plan.epochs = context.spec.federation.local_epochs;
  plan.sampling = terms.options.sampling;
  if (plan.sampling == privacy::Sampling::kPoisson) plan.rate = sampling_rate(context);
  plan.clip = terms.options.clip;
  plan.neighbours = terms.neighbours;
  double multiplier = terms.server_multiplier;
  if (terms.noise == Noise::kClients && !terms.as_printed) {
    multiplier = privacy::noise_multiplier_for(client.epsilon, context.spec.privacy->delta,
                                               plan.touches() * std::max<int64_t>(client.participations, 1), plan.rate,
                                               terms.neighbours.adjacency);
  }
  plan.noise_multiplier = multiplier;
  return {plan, mechanism_of(terms, parts_of(terms, learner), multiplier)};
}

privacy::Channel clear_channel(const ClientFacts& client) {
  return privacy::Channel::in_the_clear(kPrompts, "prompts are sent as they are")
      .times(client.participations, "once per participation");
}

privacy::Channel steps_channel(const Terms& terms, const privacy::NoisySteps& steps, const ClientFacts& client) {
  const int64_t count = steps.plan().steps();
  privacy::Channel channel =
      (terms.trusts_server() ? steps.channel(kLocalPrompt, privacy::Observer::kClients)
                             : steps.channel(kPrompts, privacy::Observer::kServer))
          .times(client.participations,
                 fmt::format("once per participation, after {} noisy step{}", count, count == 1 ? "" : "s"));
  if (terms.as_printed) channel.claiming({.by = privacy::kClaimRun, .epsilon = client.epsilon});
  return channel;
}

privacy::Channel gradient_channel(const RunSettings& spec, const ClientFacts& client) {
  return privacy::Channel::to_trusted_server(kGlobalGradient,
                                             privacy::TrustedServer::declared_by(spec.privacy, spec.method))
      .times(client.participations, "once per participation");
}

privacy::GroupwiseGaussian server_mechanism(const Terms& terms, const PromptLearner& learner) {
  return mechanism_of(terms, {{kGlobalGradient, 1, learner.prompt_coordinates(false, true)}}, terms.server_multiplier);
}

privacy::Channel server_channel(const Terms& terms, const privacy::GroupwiseGaussian& mechanism, double epsilon,
                                int64_t times) {
  privacy::Channel channel =
      privacy::Channel::gaussian(kGlobalPrompt, privacy::Observer::kClients, mechanism, terms.neighbours)
          .times(times, terms.everyone ? "every round" : "every round, for those who take part");
  if (terms.as_printed) channel.claiming({.by = privacy::kClaimRun, .epsilon = epsilon});
  return channel;
}

NamedTensors named(const std::string& name, const at::Tensor& value) {
  NamedTensors tensors;
  tensors.push_back({name, value});
  return tensors;
}

NamedTensors broadcast_values(const at::Tensor& global) {
  return named(kGlobal, global.clone());
}

class Client : public ClientMethod {
 public:
  explicit Client(const ClientContext& context)
      : context_(context), terms_(terms_of(context)), learner_(learner_of(context, terms_)) {}

  StepResult step(const Broadcast& broadcast, const data::Shard& shard, privacy::PrivateState& state,
                  const StepContext& context) override {
    const at::NoGradGuard no_grad;
    RandomStream first(context.seed, "first-local-prompt", 0, static_cast<uint64_t>(context.release.client));
    learner_.set(find_tensor(broadcast.values, kGlobal), state.empty() ? learner_.first_local(first) : state.values());
    text_ = at::Tensor();
    Round round{.shard = shard, .context = context, .start = context.stream("factors")};
    StepResult result;
    result.upload = terms_.noise == Noise::kNobody ? train_in_the_clear(round) : train_with_noise(round);
    result.report = {round.loss / static_cast<double>(std::max<int64_t>(round.samples, 1)), round.samples};
    result.report.noise_norm = terms_.noise == Noise::kNobody ? std::optional(0.0) : std::nullopt;
    NamedTensors trained = learner_.local();
    result.report.diverged = !all_finite(trained) || !at::isfinite(learner_.global()).all().item<bool>();
    if (result.report.diverged) {
      result.upload.reset();
    } else if (!trained.empty()) {
      state = privacy::PrivateState(std::move(trained));
    }
    return result;
  }

  void select(const Broadcast& broadcast, const privacy::PrivateState& state) override {
    learner_.set(find_tensor(broadcast.values, kGlobal), state.values());
    text_ = at::Tensor();
  }

  at::Tensor predict(const at::Tensor& x) override {
    const at::NoGradGuard no_grad;
    if (!text_.defined()) text_ = learner_.classes().text_features(learner_.prompts());
    const models::VisionLanguage& model = learner_.classes().model();
    return prompt_logits(text_, model.image_features(x), model.temperature(), terms_.options.shape.transport);
  }

  // The images': prompts do not change them.
  at::Tensor features(const at::Tensor& x) override {
    const at::NoGradGuard no_grad;
    return learner_.classes().model().image_features(x);
  }

  NamedTensors selected_weights() const override { return named("prompt", learner_.prompts()); }

 private:
  struct Round {
    const data::Shard& shard;
    const StepContext& context;
    RandomStream start;
    double loss = 0;
    int64_t samples = 0;
    std::vector<at::Tensor> global_gradients = {};  // for a trusted server: rows of [·, b, w]
  };

  PromptLearner::Evidence look_at(const at::Tensor& positions, Round& round) {
    learner_.begin_step(round.start);
    data::gather(context_.records, round.shard.train.index_select(0, positions), batch_);
    auto evidence = learner_.evidence(learner_.classes().model().image_features(batch_.x), batch_.y);
    round.loss += evidence.loss;
    round.samples += positions.size(0);
    return evidence;
  }

  void descend(NamedTensors gradients) {
    for (const auto& [name, value] : learner_.public_terms()) {
      if (at::Tensor gradient = find_tensor(gradients, name); gradient.defined()) gradient.add_(value);
    }
    learner_.descend(gradients, context_.spec.federation.lr, terms_.global_lr);
  }

  privacy::Upload train_in_the_clear(Round& round) {
    RandomStream order = round.context.stream("batch-order");
    const FederationOptions& federation = context_.spec.federation;
    const int64_t records = round.shard.size();
    for (int64_t epoch = 0; epoch < federation.local_epochs; ++epoch) {
      const at::Tensor shuffled = at::tensor(order.permutation(records), at::kLong);
      for (int64_t begin = 0; begin < records; begin += federation.batch) {
        const int64_t count = std::min(federation.batch, records - begin);
        const auto evidence = look_at(shuffled.narrow(0, begin, count), round);
        descend(learner_.pull_back(PromptLearner::sum_of(evidence) / static_cast<double>(count)));
      }
    }
    return clear_channel(round.context.own).release_clear(round.context.release, [&] {
      return privacy::Contribution(broadcast_values(learner_.global()));
    });
  }

  std::optional<privacy::Upload> train_with_noise(Round& round) {
    const privacy::ReleaseContext& where = round.context.release;
    const ClientFacts& facts = round.context.own;
    std::optional<privacy::Upload> upload;
    if (terms_.trusts_server() && !learner_.has_local()) {
      gather_without_steps(round, facts);
    } else {
      const privacy::NoisySteps steps = steps_of(context_, terms_, learner_, facts);
      privacy::Release release = steps.run(
          steps_channel(terms_, steps, facts), round.shard.train, where,
          [&](const at::Tensor& positions) { return bounded_gradient(positions, round); },
          [&](const NamedTensors& noisy) { update(noisy, steps.plan()); },
          [&] { return broadcast_values(learner_.global()); });
      if (!terms_.trusts_server()) upload = std::move(release);
    }
    if (terms_.trusts_server()) {
      upload = gradient_channel(context_.spec, facts).hand_over(where, [&] {
        return privacy::clip_each(privacy::Contribution(named(kGlobalGradient, at::cat(round.global_gradients))),
                                  {{kGlobalGradient, 1, terms_.options.clip}}, 1.0, terms_.bounded_under());
      });
    }
    return upload;
  }

  // One prompt and a trusted server: nothing happens at the client that needs noise, and the prompt stays where it is.
  void gather_without_steps(Round& round, const ClientFacts& facts) {
    const int64_t records = facts.records, batch = context_.spec.federation.batch;
    for (int64_t begin = 0; begin < records; begin += batch) {
      const at::Tensor positions = at::arange(begin, std::min(records, begin + batch), at::kLong);
      keep_global_rows(gradient_rows(look_at(positions, round)), round);
    }
  }

  // Gradients by the prompts, a row for each record; as printed, one row for the whole batch.
  NamedTensors gradient_rows(const PromptLearner::Evidence& evidence) const {
    if (!terms_.as_printed) return learner_.pull_back_each(evidence);
    const double records = static_cast<double>(std::max<int64_t>(evidence.images.size(0), 1));
    NamedTensors rows = learner_.pull_back(PromptLearner::sum_of(evidence) / records);
    for (NamedTensor& row : rows) row.value = row.value.unsqueeze(0);
    return rows;
  }

  NamedTensors keep_global_rows(NamedTensors rows, Round& round) const {
    if (!terms_.trusts_server()) return rows;
    SOTTO_INVARIANT(rows.back().name == kGlobal);
    round.global_gradients.push_back(rows.back().value);
    rows.pop_back();
    return rows;
  }

  privacy::Bounded bounded_gradient(const at::Tensor& positions, Round& round) {
    const auto evidence = look_at(positions, round);
    const auto rules = rules_of(terms_, parts_of(terms_, learner_));
    if (terms_.as_printed || terms_.options.clip_at_prompt) {
      return privacy::clip_each(privacy::Contribution(keep_global_rows(gradient_rows(evidence), round)), rules, 1.0,
                                terms_.bounded_under());
    }
    if (!evidence.errors.defined()) {
      return privacy::clip_each(privacy::Contribution(named(kTextFeatures, evidence.images)), rules, 1.0,
                                terms_.bounded_under());
    }
    NamedTensors factors = named("errors", evidence.errors);
    factors.push_back({"images", evidence.images});
    return privacy::clip_outer_products(privacy::Contribution(std::move(factors)), rules.front(),
                                        terms_.bounded_under());
  }

  // From here on everything is post-processing of what has noise.
  void update(const NamedTensors& noisy, const privacy::DescentPlan& plan) {
    const double divisor = terms_.as_printed ? 1.0 : plan.expected_batch();
    NamedTensors gradients;
    if (terms_.as_printed || terms_.options.clip_at_prompt) {
      gradients = clone(noisy);
      scale(gradients, 1.0 / divisor);
    } else {
      gradients = learner_.pull_back(noisy.front().value.flatten() / divisor);
    }
    descend(std::move(gradients));
  }

  ClientContext context_;
  Terms terms_;
  PromptLearner learner_;
  data::Batch batch_;
  at::Tensor text_;  // of the selected prompts, once they were asked for
};

// Adds up clipped gradients of the global prompt, adds noise, and takes one step.
class TrustedServerSide : public ServerMethod {
 public:
  explicit TrustedServerSide(const PublicContext& context)
      : terms_(terms_of(context)),
        epsilon_(context.spec.privacy->least_budget()),
        participations_(context.facts.most_participations) {
    privacy::TrustedServer::declared_by(context.spec.privacy, context.spec.method);
    const PromptLearner learner = learner_of(context, terms_);
    global_ = first_global_prompt(terms_.options, learner, context.spec.seed);
    mechanism_ = server_mechanism(terms_, learner);
    const double cohort = static_cast<double>(expected_cohort(context.spec));
    step_ =
        terms_.global_lr / (terms_.as_printed ? cohort : cohort * static_cast<double>(context.spec.federation.batch));
    sum_.emplace(named(kGlobalGradient, global_), mechanism_->groups());
  }

  Broadcast open() override { return {0, broadcast_values(global_)}; }

  void accept(const privacy::Upload& upload) override {
    SOTTO_INVARIANT(upload.trusted() != nullptr);
    sum_->add(*upload.trusted());
  }

  Broadcast aggregate(const RoundContext& context) override {
    const privacy::Channel channel = server_channel(terms_, *mechanism_, epsilon_, participations_);
    const auto sum = [&] { return sum_->take(); };
    const std::optional<privacy::Release> release = terms_.everyone
                                                        ? channel.release(context.release, sum)
                                                        : channel.release_for(context.cohort, context.release, sum);
    if (release) global_.sub_(release->values().front().value.view_as(global_), step_);
    return {context.round(), broadcast_values(global_)};
  }

  void restore(const Broadcast& last, const NamedTensors&) override {
    global_.copy_(find_tensor(last.values, kGlobal));
  }

 private:
  Terms terms_;
  double epsilon_;
  int64_t participations_;
  at::Tensor global_;
  std::optional<privacy::GroupwiseGaussian> mechanism_;
  double step_ = 0;
  std::optional<privacy::BoundedSum> sum_;
};

ReleasePlan plan(const PublicContext& context, const ClientFacts& client) {
  const Terms terms = terms_of(context);
  const PromptLearner learner = learner_of(context, terms);
  if (terms.noise == Noise::kNobody) return {clear_channel(client)};
  ReleasePlan releases;
  const double expected = static_cast<double>(expected_cohort(context.spec) * context.spec.rounds);
  if (learner.has_local() || !terms.trusts_server()) {
    const privacy::NoisySteps steps = steps_of(context, terms, learner, client);
    const privacy::DescentPlan& descent = steps.plan();
    releases.push_back(steps_channel(terms, steps, client));
    releases.back().reaching({.coordinates = steps.mechanism().coordinates(),
                              .bound = terms.options.clip * (terms.as_printed ? 1.0 : descent.expected_batch()),
                              .noise_stddev = steps.mechanism().noise_stddev(0),
                              .summands = terms.trusts_server()
                                              ? static_cast<double>(client.participations * descent.steps())
                                              : expected * static_cast<double>(descent.steps())});
  }
  if (!terms.trusts_server()) return releases;
  releases.push_back(gradient_channel(context.spec, client));
  const auto mechanism = server_mechanism(terms, learner);
  releases.push_back(
      server_channel(terms, mechanism, client.epsilon, terms.everyone ? context.spec.rounds : client.participations));
  releases.back().reaching(
      {.coordinates = mechanism.coordinates(),
       .bound = terms.options.clip * static_cast<double>(expected_cohort(context.spec) * client.records),
       .noise_stddev = mechanism.noise_stddev(0),
       .summands = static_cast<double>(context.spec.rounds)});
  return releases;
}

privacy::UploadShape upload_shape(const PublicContext& context, const Broadcast& broadcast) {
  const Terms terms = terms_of(context);
  const std::vector<int64_t> sizes = find_tensor(broadcast.values, kGlobal).sizes().vec();
  if (!terms.trusts_server()) return {.tensors = {{.name = kGlobal, .sizes = sizes}}};
  return {.tensors = {{.name = kGlobalGradient, .sizes = sizes}},
          .trusted = privacy::TrustedBounds{.groups = server_mechanism(terms, learner_of(context, terms)).groups()}};
}

}  // namespace

PromptOptions read_prompt_options(settings::Section& section) {
  PromptOptions o;
  o.encoder = section.text("encoder", o.encoder);
  o.length = section.integer("length", o.length, settings::between(1, 64));
  o.start_as_words = section.one_of("start", "words", {"words", "random"}) == "words";
  o.clip = section.number("clip", o.clip, settings::kPositive);
  o.clip_at_prompt = section.one_of("clip_at", "text-features", {"text-features", "prompt"}) == "prompt";
  o.global_lr = section.number("global_lr", o.global_lr, settings::kNonNegative);
  if (section.one_of("batches", "disjoint", {"disjoint", "poisson"}) == "poisson") {
    o.sampling = privacy::Sampling::kPoisson;
  }
  o.in_the_clear = section.boolean("in_the_clear", o.in_the_clear);
  return o;
}

PromptLearner make_prompt_learner(const PromptOptions& options, const std::vector<std::string>& class_names,
                                  int64_t record_width) {
  return PromptLearner(options.shape,
                       models::PromptedClasses(models::open_vision_language(options.encoder, record_width), class_names,
                                               options.length));
}

at::Tensor first_global_prompt(const PromptOptions& options, const PromptLearner& learner, uint64_t seed) {
  if (options.start_as_words) return learner.classes().photo_prompt();
  RandomStream stream(seed, "first-global-prompt");
  return at::empty({options.length, learner.classes().model().word_width()})
      .normal_(0.0, 0.02, stream.torch_generator());
}

MethodEntry prompt_learning(std::string name, std::string what, std::string citation, PromptReader read) {
  return {
      .name = std::move(name),
      .what = std::move(what),
      .citation = std::move(citation),
      .family = "prompts",
      .units = {privacy::Unit::kRecord},
      .observers = {privacy::Observer::kServer, privacy::Observer::kClients, privacy::Observer::kPublic},
      .variants = {Variant::kSound, Variant::kPaper},
      .read_options = [read](settings::Section& section) { return std::any(read(section)); },
      .example_options = {"encoder=\"tiny\""},
      .uses_model = false,
      .plan = plan,
      .personal =
          [](const RunSettings& spec) { return spec.options_of<PromptOptions>().shape.local != LocalPrompt::kNone; },
      .global =
          [](const RunSettings& spec) { return spec.options_of<PromptOptions>().shape.local == LocalPrompt::kNone; },
      .make_client = [](const ClientContext& context) -> std::unique_ptr<ClientMethod> {
        return std::make_unique<Client>(context);
      },
      .make_server = [](const PublicContext& context) -> std::unique_ptr<ServerMethod> {
        const Terms terms = terms_of(context);
        if (terms.trusts_server()) return std::make_unique<TrustedServerSide>(context);
        return make_averaging_server_from(
            broadcast_values(first_global_prompt(terms.options, learner_of(context, terms), context.spec.seed)));
      },
      .upload_shape = upload_shape};
}

}  // namespace sotto::methods
