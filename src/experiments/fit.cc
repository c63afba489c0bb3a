#include "experiments/fit.h"

#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/statistics.h"
#include "base/text.h"
#include "experiments/chance.h"
#include "experiments/jobs.h"
#include "federation/setup.h"
#include "methods/parts/loudness.h"
#include "report/curve_picture.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace sotto::experiments {
namespace {

// Repeats are the outer loop: the whole matrix is known once before it is known better.
std::vector<Job> plan_jobs(const run::ConfigSource& config, const FitGrid& grid, const fs::path& folder) {
  std::vector<Job> jobs;
  for (int64_t seed = 1; seed <= grid.repeats; ++seed) {
    for (size_t i = 0; i < grid.budgets.size(); ++i) {
      for (size_t j = 0; j < grid.bounds.size(); ++j) {
        jobs.push_back(make_job(i * grid.bounds.size() + j,
                                simulation(config, grid, grid.budgets[i], grid.bounds[j], seed), folder));
      }
    }
  }
  return jobs;
}

// Of the client that takes part as often as half of them. The bound cancels out.
double signal_to_noise_of(const federation::Setup& setup) {
  std::vector<int64_t> clients(static_cast<size_t>(setup.spec().data.clients));
  std::iota(clients.begin(), clients.end(), 0);
  const auto middle = clients.begin() + static_cast<std::ptrdiff_t>(clients.size() / 2);
  std::stable_sort(clients.begin(), clients.end(),
                   [&](int64_t a, int64_t b) { return setup.participations_of(a) < setup.participations_of(b); });
  return 1 / methods::loudness(setup.plan_for(*middle).front().reach()).in_norm;
}

// Before any work is done: what is wrong with the settings shows here.
std::vector<double> signal_to_noise_of_budgets(const FitGrid& grid, const std::vector<Job>& jobs) {
  std::vector<double> ratios;
  for (size_t i = 0; i < grid.budgets.size(); ++i) {
    ratios.push_back(signal_to_noise_of(federation::Setup(jobs[i * grid.bounds.size()].spec)));
    if (grid.options.axis == methods::CurveAxis::kSignalToNoise && i > 0 && ratios[i] <= ratios[i - 1]) {
      fail_user("fit.axis: the budgets {} and {} lead to the same noise; leave one out, or set axis = \"epsilon\"",
                grid.budgets[i - 1], grid.budgets[i]);
    }
  }
  return ratios;
}

double accuracy_of(const Job& job) {
  return job.summary->evaluation.over(&federation::ClientScore::accuracy).mean;
}

// The best pair so far, for those who wait.
class Leader {
 public:
  explicit Leader(const FitGrid& grid) : grid_(grid) {}

  std::string after(const Job& job) {
    const double accuracy = accuracy_of(job);
    if (accuracy > accuracy_) {
      accuracy_ = accuracy;
      cell_ = job.cell;
    }
    if (accuracy_ < 0) return {};
    return fmt::format("best {:.1f} % (ε = {:.4g}, C = {:.4g})", 100 * accuracy_,
                       grid_.budgets[cell_ / grid_.bounds.size()], grid_.bounds[cell_ % grid_.bounds.size()]);
  }

 private:
  const FitGrid& grid_;
  double accuracy_ = -1;
  size_t cell_ = 0;
};

FitMatrix collect(const FitGrid& grid, const std::vector<Job>& jobs, std::vector<double> signal_to_noise,
                  const Chance& chance) {
  const size_t columns = grid.bounds.size();
  std::vector<std::vector<double>> values(grid.budgets.size() * columns);
  for (const Job& job : jobs) {
    if (!job.failure.empty()) {
      fail_user("the run with ε = {} and C = {} failed: {}", grid.budgets[job.cell / columns],
                grid.bounds[job.cell % columns], job.failure);
    }
    values[job.cell].push_back(accuracy_of(job));
  }
  FitMatrix matrix;
  matrix.chance = chance.accuracy;
  matrix.x = grid.options.axis == methods::CurveAxis::kSignalToNoise ? signal_to_noise : grid.budgets;
  matrix.signal_to_noise = std::move(signal_to_noise);
  for (size_t i = 0; i < grid.budgets.size(); ++i) {
    std::vector<double> means, stds;
    for (size_t j = 0; j < columns; ++j) {
      means.push_back(mean(values[i * columns + j]));
      stds.push_back(sample_std(values[i * columns + j]));
    }
    matrix.best.push_back(methods::best_bound(means, grid.bounds));
    matrix.clears.push_back(clears_chance(means, stds, grid.repeats, chance));
    matrix.mean.push_back(std::move(means));
    matrix.std.push_back(std::move(stds));
  }
  return matrix;
}

methods::CurveFit fit_matrix(const FitGrid& grid, const FitMatrix& matrix) {
  std::vector<methods::CurvePoint> points;
  for (size_t i = 0; i < grid.budgets.size(); ++i) {
    if (matrix.clears[i]) points.push_back({matrix.x[i], grid.bounds[matrix.best[i]]});
  }
  return methods::fit_curve(std::move(points), {.axis = grid.options.axis,
                                                .outliers = grid.options.outliers,
                                                .monotone = grid.options.monotone,
                                                .least = grid.bounds.front(),
                                                .most = grid.bounds.back(),
                                                .grain = grid.largest_ratio()});
}

// A bound that is best by chance is no knot of a curve. A quick look has too few rounds to be held to that.
void leave_out_what_is_chance(const FitGrid& grid, FitMatrix& matrix) {
  std::vector<std::string> left_out;
  for (size_t i = 0; i < grid.budgets.size(); ++i) {
    if (!matrix.clears[i]) left_out.push_back(fmt::format("{:.4g}", grid.budgets[i]));
  }
  if (left_out.empty()) return;
  const std::string which =
      fmt::format("at ε = {} no bound is above chance, {:.2f} %", join(left_out, ", "), 100 * matrix.chance);
  if (grid.quick) {
    warn("{}: a curve would follow noise there", which);
    matrix.clears.assign(matrix.clears.size(), true);
  } else if (left_out.size() == grid.budgets.size()) {
    fail_user("{}: no curve can be learnt; set fit.rounds or fit.repeats higher, or try larger budgets", which);
  } else {
    warn("{}: the curve leaves that out; with more fit.rounds or fit.repeats it might count", which);
  }
}

report::CurveSummary picture_of(const FitGrid& grid, const config::RunSpec& simulated, const FitMatrix& matrix,
                                const methods::CurveFit& fit) {
  report::CurveSummary summary;
  summary.title = "Which clipping bound suits which budget";
  summary.subtitle = fmt::format("{}, {} on {}: {} clients, {} rounds, mean of {} run{}{}", simulated.method,
                                 simulated.model.name, grid.options.proxy, simulated.data.clients, simulated.rounds,
                                 grid.repeats, grid.repeats == 1 ? "" : "s", grid.quick ? "; a quick look only" : "");
  summary.fit = fit;
  summary.x = matrix.x;
  summary.bounds = grid.bounds;
  summary.accuracy = matrix.mean;
  return summary;
}

}  // namespace

FitResult run_fit(const FitRequest& request) {
  FitResult result;
  result.grid = plan_fit(request.config, request.scope);
  const FitGrid& grid = result.grid;
  std::vector<Job> jobs = plan_jobs(request.config, grid, request.folder / "runs");
  if (grid.proxy_is_client_data) {
    warn("the curve is learnt from the clients' own dataset: unless {} is public, no budget covers it",
         grid.options.proxy);
  }
  std::vector<double> signal_to_noise = signal_to_noise_of_budgets(grid, jobs);
  info("{} budgets × {} bounds × {} repeats = {} runs of {} rounds on {} into {}", grid.budgets.size(),
       grid.bounds.size(), grid.repeats, jobs.size(), grid.rounds, grid.options.proxy, request.folder.string());
  Leader leader(grid);
  run_jobs(jobs,
           {.title = "fit", .threads = request.threads, .status = [&](const Job& job) { return leader.after(job); }});
  if (interrupted()) throw Interrupted("stopped; the same command continues the fit");

  result.matrix = collect(grid, jobs, std::move(signal_to_noise), chance_of(federation::Setup(jobs.front().spec)));
  leave_out_what_is_chance(grid, result.matrix);
  result.fitted = fit_matrix(grid, result.matrix);
  const config::RunSpec& simulated = jobs.front().spec;
  result.content = curve_file(grid, simulated, result.matrix, result.fitted);
  methods::clip_curve_from(nlohmann::json(result.content["curve"]), "the fitted curve");
  make_folder(request.folder);
  result.file = request.folder / "curve.json";
  write_file_atomically(result.file, readable(result.content));
  report::write_curve_picture(request.folder / "curve.png", picture_of(grid, simulated, result.matrix, result.fitted));
  return result;
}

}  // namespace sotto::experiments
