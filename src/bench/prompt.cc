#include "bench/prompt.h"

#include "base/progress.h"
#include "base/random.h"
#include "bench/median.h"
#include "methods/prompts/prompt_learning.h"
#include "methods/prompts/record_evidence.h"
#include "privacy/dpsgd/noisy_steps.h"
#include "privacy/ledger.h"
#include "privacy/outer_products.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <ctime>
#include <string>
#include <vector>

namespace sotto::bench {
namespace {

using nlohmann::json;

constexpr double kLearningRate = 1e-4;
constexpr double kClip = 10;
constexpr double kNoiseMultiplier = 1;
constexpr int64_t kRecordWidth = 2048;

// One client's prompts and one batch, and the three ways to take a step.
class Trainee {
 public:
  explicit Trainee(const PromptOptions& options)
      : learner_(make(options)), stream_(1, "bench-prompt"), slots_(privacy::suited_slots(options.batch, true)) {
    x_ = at::empty({options.batch, kRecordWidth}).normal_(0.0, 1.0, stream_.torch_generator());
    y_ = at::randint(0, options.classes, {options.batch}, stream_.torch_generator(), at::kLong);
    learner_.set(learner_.classes().photo_prompt(), learner_.first_local(stream_));
  }

  void plain_step() {
    learner_.begin_step(stream_);
    const auto evidence = methods::evidence_of_batch(learner_, x_, y_);
    learner_.descend(learner_.pull_back(methods::PromptLearner::sum_of(evidence) / records()), kLearningRate,
                     kLearningRate);
  }

  void step_clipped_at_features() {
    noisy_step(
        "features", 1, learner_.feature_coordinates(),
        [&](const at::Tensor&) {
          const auto evidence = look();
          NamedTensors factors;
          factors.push_back({"errors", evidence.errors});
          factors.push_back({"images", evidence.images});
          return privacy::clip_outer_products(privacy::Contribution(std::move(factors)), {"features", 1, kClip},
                                              privacy::Adjacency::kAddRemove);
        },
        [&](const NamedTensors& noisy) {
          learner_.descend(learner_.pull_back(noisy[0].value.flatten() / records()), kLearningRate, kLearningRate);
        });
  }

  void step_clipped_at_prompts() {
    noisy_step(
        "prompts", 3, learner_.prompt_coordinates(true, true),
        [&](const at::Tensor&) {
          return privacy::clip_each(privacy::Contribution(learner_.pull_back_each(look())), {{"prompts", 3, kClip}},
                                    1.0, privacy::Adjacency::kAddRemove);
        },
        [&](const NamedTensors& noisy) {
          NamedTensors gradients = clone(noisy);
          scale(gradients, 1 / records());
          learner_.descend(gradients, kLearningRate, kLearningRate);
        });
  }

 private:
  static methods::PromptLearner make(const PromptOptions& options) {
    std::vector<std::string> names;
    for (int64_t i = 0; i < options.classes; ++i) names.push_back(fmt::format("class number {}", i));
    methods::PromptOptions prompt;
    prompt.encoder = options.encoder;
    prompt.length = options.length;
    prompt.shape.local = methods::LocalPrompt::kFactored;
    prompt.shape.rank = options.rank;
    return methods::make_prompt_learner(prompt, names, kRecordWidth);
  }

  double records() const { return static_cast<double>(y_.size(0)); }

  // As the clients of a private run do.
  methods::PromptLearner::Evidence look() {
    learner_.begin_step(stream_);
    return methods::evidence_in_slots(learner_, x_, y_, slots_);
  }

  void noisy_step(const std::string& what, int64_t tensors, int64_t coordinates,
                  const privacy::NoisySteps::Gradient& gradient, const privacy::NoisySteps::Update& update) {
    const auto mechanism =
        privacy::GroupwiseGaussian::calibrated(kNoiseMultiplier, {{what, tensors, coordinates, kClip}});
    privacy::DescentPlan plan;
    plan.records = y_.size(0);
    plan.batch = y_.size(0);
    plan.neighbours.adjacency = privacy::Adjacency::kAddRemove;
    const privacy::NoisySteps steps(plan, mechanism);
    const privacy::ReleaseContext context{.ledger = ledger_, .round = ++round_};
    steps.run(steps.channel(what, privacy::Observer::kServer), y_, context, gradient, update,
              [] { return NamedTensors(); });
  }

  methods::PromptLearner learner_;
  RandomStream stream_;
  privacy::FixedSlots slots_;
  at::Tensor x_, y_;
  privacy::Ledger ledger_;
  int64_t round_ = 0;  // every step is a release of its own
};

// Of the processor, so that what else the machine does is not counted.
template <typename Step>
double milliseconds(const Step& step) {
  const std::clock_t begin = std::clock();
  step();
  return 1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

}  // namespace

json measure_prompt(const PromptOptions& options) {
  at::set_num_threads(options.threads);
  const at::NoGradGuard no_grad;
  Trainee trainee(options);
  trainee.plain_step();
  trainee.step_clipped_at_features();
  std::vector<double> plain, at_features, at_prompts, features_ratios, prompts_ratios;
  Progress progress("bench", options.repeats);
  for (int64_t i = 0; i < options.repeats; ++i) {
    const double before = milliseconds([&] { trainee.plain_step(); });
    at_features.push_back(milliseconds([&] { trainee.step_clipped_at_features(); }));
    const double after = milliseconds([&] { trainee.plain_step(); });
    at_prompts.push_back(milliseconds([&] { trainee.step_clipped_at_prompts(); }));
    plain.push_back((before + after) / 2);
    features_ratios.push_back(at_features.back() / plain.back());
    prompts_ratios.push_back(at_prompts.back() / plain.back());
    progress.advance();
  }
  return {{"encoder", options.encoder},
          {"classes", options.classes},
          {"batch", options.batch},
          {"length", options.length},
          {"rank", options.rank},
          {"threads", options.threads},
          {"plain_ms", median(plain)},
          {"text_features_ms", median(at_features)},
          {"prompt_ms", median(at_prompts)},
          {"text_features_ratio", median(features_ratios)},
          {"prompt_ratio", median(prompts_ratios)}};
}

}  // namespace sotto::bench
