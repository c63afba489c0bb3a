#include "artifacts/summary.h"
#include "base/allocator.h"
#include "base/interrupt.h"
#include "base/parallel.h"
#include "federation/home_terms.h"
#include "library/boundary.h"
#include "run/config_source.h"
#include "run/execute.h"

#include <sotto/run.h>

#include <utility>

namespace sotto {

struct Run::Inside {
  std::filesystem::path folder;
  std::optional<privacy::Home> home;
  std::optional<run::Run> run;
};

namespace {

using sotto::to_public;

run::ConfigSource source_of(const RunOptions& options) {
  return {.config = options.config, .overrides = options.set};
}

Evaluation to_public(const federation::Evaluation& evaluation) {
  Evaluation result;
  for (const federation::ClientScore& score : evaluation.clients) {
    result.clients.push_back({.client = score.client,
                              .records = score.records,
                              .accuracy = score.accuracy,
                              .balanced_accuracy = score.balanced_accuracy,
                              .auroc = score.auroc});
  }
  const federation::Spread accuracy = evaluation.over(&federation::ClientScore::accuracy);
  result.mean_accuracy = accuracy.mean;
  result.accuracy_std = accuracy.std;
  result.worst_accuracy = accuracy.worst;
  result.global_accuracy = evaluation.global_accuracy;
  return result;
}

RoundRecord to_public(const federation::RoundRecord& record) {
  RoundRecord result{.round = record.round,
                     .cohort = record.cohort,
                     .uploads = record.uploads,
                     .upload_bytes = record.upload_bytes,
                     .samples = record.samples,
                     .train_loss = record.train_loss,
                     .seconds = record.seconds,
                     .diverged = record.diverged,
                     .abstained = record.abstained,
                     .evaluation = {}};
  if (record.evaluation) result.evaluation = to_public(*record.evaluation);
  return result;
}

std::optional<EpsilonSpread> to_public(const std::optional<artifacts::EpsilonSpread>& spread) {
  if (!spread) return std::nullopt;
  return EpsilonSpread{.min = spread->min, .median = spread->median, .max = spread->max};
}

SpentAgainst to_public(const artifacts::SpentAgainst& spent) {
  return {.observer = spent.observer,
          .claimed = to_public(spent.claimed),
          .proven = to_public(spent.proven),
          .why_unproven = spent.why_unproven};
}

RunSummary to_public(const artifacts::RunSummary& summary) {
  RunSummary result{.name = summary.name,
                    .dataset = summary.dataset,
                    .model = summary.model,
                    .method = summary.method,
                    .variant = summary.variant,
                    .noise = summary.noise,
                    .config_hash = summary.config_hash,
                    .seed = summary.seed,
                    .rounds = summary.rounds,
                    .seconds = summary.seconds,
                    .samples_per_second = summary.samples_per_second,
                    .upload_bytes = summary.upload_bytes,
                    .diverged_steps = summary.diverged_steps,
                    .abstained = summary.abstained,
                    .evaluation = to_public(summary.evaluation),
                    .privacy = to_public(summary.privacy.declared),
                    .observers = {},
                    .proven_basis = summary.privacy.basis == privacy::Basis::kProven,
                    .basis_why = summary.privacy.basis_why,
                    .delta = summary.privacy.delta};
  for (const artifacts::SpentAgainst& spent : summary.privacy.observers) result.observers.push_back(to_public(spent));
  return result;
}

PlannedRelease to_public(const privacy::Channel& channel) {
  const privacy::Event& terms = channel.terms();
  return {.what = terms.what,
          .mechanism = terms.mechanism,
          .how_often = channel.how_often(),
          .why_unproven = terms.why_unproven,
          .times = channel.times(),
          .noise_multiplier = terms.sensitivity > 0 ? terms.noise_scale / terms.sensitivity : 0};
}

}  // namespace

Run::Run(const RunOptions& options) {
  keep_freed_memory();
  leave_signals_alone();
  for_program([&] {
    const config::RunSpec spec = run::load_spec(source_of(options));
    auto inside = std::make_unique<Inside>();
    inside->folder = options.folder.empty() ? run::default_run_folder(source_of(options), spec) : options.folder;
    if (!options.resume) artifacts::require_new(inside->folder);
    const federation::Setup setup(spec);
    if (!options.home.empty()) inside->home.emplace(options.home, federation::home_records(setup));
    inside->run.emplace(setup, run::RunOptions{.folder = inside->folder,
                                               .resume = options.resume,
                                               .threads = options.threads > 0 ? options.threads : available_threads(),
                                               .home = inside->home ? &*inside->home : nullptr});
    inside_ = std::move(inside);
  });
}

Run::~Run() = default;
Run::Run(Run&&) noexcept = default;
Run& Run::operator=(Run&&) noexcept = default;

const std::filesystem::path& Run::folder() const {
  return inside_->folder;
}

std::optional<RoundRecord> Run::next_round() {
  return for_program([&]() -> std::optional<RoundRecord> {
    const auto record = inside_->run->next_round();
    if (!record) return std::nullopt;
    return to_public(*record);
  });
}

bool Run::finished() const {
  return inside_->run->finished();
}

Tensors Run::broadcast() const {
  return to_public(inside_->run->broadcast().values);
}

RunSummary Run::finish() {
  return for_program([&] {
    if (!finished()) fail_user("{}: there are rounds to be run before the run is finished", folder().string());
    return to_public(inside_->run->finish());
  });
}

void stop_runs(bool stop) {
  request_interrupt(stop);
}

std::optional<RunSummary> read_summary(const std::filesystem::path& folder) {
  return for_program([&]() -> std::optional<RunSummary> {
    const auto summary = artifacts::RunReader(folder).summary();
    if (!summary) return std::nullopt;
    return to_public(*summary);
  });
}

std::vector<PlannedRelease> plan(const RunOptions& options, int64_t client) {
  return for_program([&] {
    const federation::Setup setup(run::load_spec(source_of(options)));
    const int64_t clients = setup.spec().data.clients;
    if (client < 0 || client >= clients) fail_user("client {}: there are {}, counted from 0", client, clients);
    std::vector<PlannedRelease> releases;
    for (const privacy::Channel& channel : setup.plan_for(client)) releases.push_back(to_public(channel));
    return releases;
  });
}

}  // namespace sotto
