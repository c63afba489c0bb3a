#include "experiments/private_selection.h"

#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "experiments/selection_cost.h"
#include "experiments/sweep_grid.h"
#include "federation/evaluator.h"
#include "privacy/noise/discrete.h"
#include "privacy/noise/noise_source.h"
#include "run/execute.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace sotto::experiments {
namespace {

using nlohmann::json;

// What a client's accuracy counts for where clients are protected: how many records it has is its own affair.
constexpr int64_t kPointsOfClient = 1000;

// What a score is counted in.
struct Scale {
  int64_t points = 0;       // at most: held-out records, or kPointsOfClient for every client that is asked
  int64_t sensitivity = 1;  // how many of them one neighbour can change

  bool operator==(const Scale&) const = default;
};

struct Candidate {
  Cell cell;
  federation::Setup setup;
  Scale scale;
};

void require_private(const config::RunSpec& spec, const federation::Setup& setup) {
  if (!spec.privacy) fail_user("--private-selection is for private runs: state [privacy]");
  if (spec.privacy->generator != privacy::Generator::kSecure) {
    fail_user("--private-selection needs fresh noise in every trial: set privacy.noise = \"secure\"");
  }
  if (spec.privacy->adjacency == privacy::Adjacency::kAddRemove && spec.privacy->unit == privacy::Unit::kRecord) {
    fail_user(
        "--private-selection compares shares of the held-out records, whose number add-remove of records keeps secret: "
        "set privacy.adjacency to \"zero-out\" or \"replace\"");
  }
  if (!setup.method().global(spec)) {
    fail_user("--private-selection scores global models, and {} has none", spec.method);
  }
}

Scale scale_of(const federation::Setup& setup) {
  const std::vector<int64_t> asked = federation::evaluated_clients(setup.spec());
  if (setup.spec().privacy->unit == privacy::Unit::kClient) {
    return {.points = kPointsOfClient * std::ssize(asked), .sensitivity = kPointsOfClient};
  }
  return {.points = federation::HeldOut(setup, asked).universe.size(0)};
}

// How many points the global model of a finished run gets; what is not a number is none.
int64_t points_of(const artifacts::RunSummary& summary, const Candidate& candidate) {
  const auto share_of = [](double accuracy, int64_t points) -> int64_t {
    return std::isfinite(accuracy) ? std::llround(accuracy * static_cast<double>(points)) : 0;
  };
  const federation::Evaluation& evaluation = summary.evaluation;
  if (candidate.setup.spec().privacy->unit == privacy::Unit::kRecord) {
    return share_of(evaluation.global_accuracy, candidate.scale.points);
  }
  int64_t sum = 0;
  for (const federation::ClientScore& score : evaluation.clients) sum += share_of(score.accuracy, kPointsOfClient);
  return sum;
}

std::vector<Candidate> load_candidates(const SelectionRequest& request) {
  models::TaskDataCache cache;
  std::vector<Candidate> candidates;
  for (const Cell& cell : combine(request.options.rows, expand_grid(request.options.grid))) {
    std::vector<std::string> overrides = cell.overrides;
    overrides.insert(overrides.end(), request.options.quick.begin(), request.options.quick.end());
    const config::RunSpec spec = run::load_spec(request.config, overrides);
    federation::Setup setup(spec, cache);
    require_private(spec, setup);
    const Scale scale = scale_of(setup);
    if (scale.points == 0) fail_user("--private-selection needs held-out records, and there are none");
    candidates.push_back({cell, std::move(setup), scale});
    const Candidate& first = candidates.front();
    const privacy::PrivacyTerms &here = *spec.privacy, &there = *first.setup.spec().privacy;
    if (here.delta != there.delta || here.observer != there.observer || here.neighbours() != there.neighbours() ||
        scale != first.scale) {
      fail_user(
          "--private-selection compares like with like: all settings of the grid must share the held-out records, "
          "privacy.delta, adjacency, unit and observer");
    }
  }
  return candidates;
}

// All that a trial of this cell may cost somebody, its score included.
std::vector<privacy::TrialCost> costs_of(const Candidate& candidate, double noise_stddev) {
  const std::string observer = settings::word(candidate.setup.spec().privacy->observer);
  std::vector<privacy::Tally> planned;
  for (int64_t client = 0; client < candidate.setup.partition().clients(); ++client) {
    privacy::Tally tally;
    for (const privacy::Channel& channel : candidate.setup.plan_for(client)) {
      if (!privacy::is_seen_by(channel.terms(), observer)) continue;
      if (!channel.terms().why_unproven.empty()) {
        fail_user("--private-selection: nothing can be proven of '{}', which {} releases: {}", channel.terms().what,
                  candidate.setup.spec().method, channel.terms().why_unproven);
      }
      tally.add(channel.terms(), channel.times());
    }
    planned.push_back(std::move(tally));
  }
  std::vector<privacy::TrialCost> costs = alternatives(planned);
  for (privacy::TrialCost& cost : costs) {
    cost.steps.push_back({privacy::Step::gaussian(noise_stddev / static_cast<double>(candidate.scale.sensitivity)), 1});
    cost.renyi_only = true;  // of the score's discrete noise no more is known
  }
  return costs;
}

privacy::TrialLaw law_of(const SelectionRequest& request) {
  switch (request.number) {
    case TrialNumber::kLogarithmic:
      return privacy::TrialLaw::logarithmic(request.mean_trials);
    case TrialNumber::kGeometric:
      return privacy::TrialLaw::geometric(request.mean_trials);
    case TrialNumber::kPoisson:
      break;
  }
  return privacy::TrialLaw::poisson(request.mean_trials);
}

size_t uniform_below(size_t bound, privacy::NoiseSource& source) {
  const uint64_t all = std::numeric_limits<uint64_t>::max();
  const uint64_t fair = all - all % bound;
  uint64_t bits = source.bits();
  while (bits >= fair) bits = source.bits();
  return static_cast<size_t>(bits % bound);
}

[[noreturn]] void refuse_folder(const fs::path& folder) {
  fail_user("{} exists already; choose another --out", folder.string());
}

// Of several processes that begin at the same moment one gets the folder.
void claim(const fs::path& folder) {
  const fs::path parent = fs::absolute(folder / "").parent_path().parent_path();
  make_folder(parent);
  if (!fs::create_directory(folder)) refuse_folder(folder);
  sync_folder(parent);
}

// Removes its folder unless told otherwise, whatever happens.
class TrialFolder {
 public:
  explicit TrialFolder(fs::path path) : path_(std::move(path)) {}
  ~TrialFolder() { remove(path_); }
  TrialFolder(const TrialFolder&) = delete;
  TrialFolder& operator=(const TrialFolder&) = delete;

  const fs::path& path() const { return path_; }
  void keep_as(const fs::path& best) const {
    remove(best);
    fs::rename(path_, best);
  }
  static void remove(const fs::path& path) {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }

 private:
  fs::path path_;
};

std::optional<Selected> run_trials(const SelectionRequest& request, const std::vector<Candidate>& candidates,
                                   const privacy::TrialLaw& law, double noise_stddev) {
  privacy::NoiseSource source = privacy::NoiseSource::secure();
  const int64_t trials = law.draw([&] { return source.bits(); });
  const fs::path best_folder = request.folder / "best";
  std::optional<Selected> best;
  for (int64_t i = 0; i < trials; ++i) {
    const Candidate& candidate = candidates[uniform_below(candidates.size(), source)];
    const TrialFolder trial(request.folder / "trial");
    const auto summary =
        run::execute(candidate.setup, {.folder = trial.path(), .resume = false, .threads = request.threads});
    if (!summary || interrupted()) {
      TrialFolder::remove(best_folder);
      throw Interrupted("stopped; nothing was selected, and nothing is left of the trials");
    }
    const int64_t noisy = points_of(*summary, candidate) + privacy::discrete_gaussian(noise_stddev, source);
    const double score = static_cast<double>(noisy) / static_cast<double>(candidate.scale.points);
    if (best && score <= best->score) continue;
    best = {candidate.cell.row, candidate.cell.settings, score, best_folder};
    trial.keep_as(best_folder);
  }
  return best;
}

}  // namespace

Selection select_privately(const SelectionRequest& request) {
  const privacy::TrialLaw law = law_of(request);
  if (!(request.score_noise > 0 && request.score_noise <= 10)) {
    fail_user("--score-noise must be above 0 and at most 10, not {}", request.score_noise);
  }
  if (fs::exists(request.folder)) refuse_folder(request.folder);
  const std::vector<Candidate> candidates = load_candidates(request);
  const double noise_stddev = request.score_noise * static_cast<double>(candidates.front().scale.points);
  std::vector<privacy::TrialCost> costs;
  for (const Candidate& candidate : candidates) {
    for (privacy::TrialCost& cost : costs_of(candidate, noise_stddev)) costs.push_back(std::move(cost));
  }
  const privacy::PrivacyTerms& terms = *candidates.front().setup.spec().privacy;
  Selection selection{.epsilon = privacy::selection_epsilon(costs, law, terms.delta),
                      .delta = terms.delta,
                      .observer = settings::word(terms.observer),
                      .number = request.number,
                      .mean_trials = law.mean(),
                      .score = terms.unit == privacy::Unit::kRecord ? "accuracy_global" : "accuracy",
                      .score_noise = request.score_noise};
  if (!std::isfinite(selection.epsilon)) {
    fail_user("--private-selection: no finite ε can be proven at δ = {}; use more noise or fewer trials", terms.delta);
  }
  info("private selection among {} settings: a secret number of trials, {:.4g} on average, for ε = {:.4g} at δ = {}",
       candidates.size(), law.mean(), selection.epsilon, terms.delta);
  claim(request.folder);
  selection.best = run_trials(request, candidates, law, noise_stddev);
  write_file_atomically(request.folder / "selection.json", to_json(selection).dump(2) + "\n");
  return selection;
}

json to_json(const Selection& selection) {
  json best = nullptr;
  if (selection.best) {
    best = {{"row", selection.best->row},
            {"settings", selection.best->settings},
            {"score", selection.best->score},
            {"run", selection.best->run.string()}};
  }
  return {{"epsilon", selection.epsilon},
          {"delta", selection.delta},
          {"observer", selection.observer},
          {"trials", {{"law", settings::word(selection.number)}, {"mean", selection.mean_trials}}},
          {"score", {{"what", selection.score}, {"noise_stddev", selection.score_noise}}},
          {"best", best}};
}

}  // namespace sotto::experiments
