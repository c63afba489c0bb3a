// sotto fit: which clipping bound suits which budget, learnt on public data.
#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/statistics.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/config_options.h"
#include "cli/output.h"
#include "experiments/curve_file.h"
#include "experiments/fit_grid.h"
#include "experiments/jobs.h"
#include "federation/setup.h"
#include "methods/parts/loudness.h"
#include "report/curve_picture.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <numeric>

namespace sotto::cli {
namespace {

struct FitCommand {
  run::ConfigSource config;
  experiments::FitScope scope;
  std::string out;
  int jobs = 0;
  OutputOptions output;
};

// Repeats are the outer loop: the whole matrix is known once before it is known better.
std::vector<experiments::Job> plan_jobs(const FitCommand& command, const experiments::FitGrid& grid,
                                        const fs::path& folder) {
  std::vector<experiments::Job> jobs;
  for (int64_t seed = 1; seed <= grid.repeats; ++seed) {
    for (size_t i = 0; i < grid.budgets.size(); ++i) {
      for (size_t j = 0; j < grid.bounds.size(); ++j) {
        jobs.push_back(experiments::make_job(
            i * grid.bounds.size() + j,
            experiments::simulation(command.config, grid, grid.budgets[i], grid.bounds[j], seed), folder));
      }
    }
  }
  return jobs;
}

// Of the client that takes part as often as half of them. The bound cancels out.
double signal_to_noise(const federation::Setup& setup) {
  std::vector<int64_t> clients(static_cast<size_t>(setup.spec().data.clients));
  std::iota(clients.begin(), clients.end(), 0);
  const auto middle = clients.begin() + static_cast<std::ptrdiff_t>(clients.size() / 2);
  std::stable_sort(clients.begin(), clients.end(),
                   [&](int64_t a, int64_t b) { return setup.participations_of(a) < setup.participations_of(b); });
  return 1 / methods::loudness(setup.plan_for(*middle).front().reach()).in_norm;
}

double accuracy_of(const experiments::Job& job) {
  const nlohmann::json& value = (*job.summary)["accuracy"]["mean"];
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

// The best pair so far, for those who wait.
class Leader {
 public:
  explicit Leader(const experiments::FitGrid& grid) : grid_(grid) {}

  std::string after(const experiments::Job& job) {
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
  const experiments::FitGrid& grid_;
  double accuracy_ = -1;
  size_t cell_ = 0;
};

// Before any work is done: what is wrong with the settings shows here.
std::vector<double> noise_of_budgets(const experiments::FitGrid& grid, const std::vector<experiments::Job>& jobs) {
  std::vector<double> noise;
  for (size_t i = 0; i < grid.budgets.size(); ++i) {
    noise.push_back(signal_to_noise(federation::Setup(jobs[i * grid.bounds.size()].spec)));
    if (grid.options.axis == methods::CurveAxis::kSignalToNoise && i > 0 && noise[i] <= noise[i - 1]) {
      fail_user("fit.axis: the budgets {} and {} lead to the same noise; leave one out, or set axis = \"epsilon\"",
                grid.budgets[i - 1], grid.budgets[i]);
    }
  }
  return noise;
}

experiments::FitMatrix collect(const experiments::FitGrid& grid, const std::vector<experiments::Job>& jobs,
                               std::vector<double> noise) {
  const size_t columns = grid.bounds.size();
  std::vector<std::vector<double>> values(grid.budgets.size() * columns);
  for (const experiments::Job& job : jobs) {
    if (!job.failure.empty()) {
      fail_user("the run with ε = {} and C = {} failed: {}", grid.budgets[job.cell / columns],
                grid.bounds[job.cell % columns], job.failure);
    }
    values[job.cell].push_back(accuracy_of(job));
  }
  experiments::FitMatrix matrix;
  matrix.x = grid.options.axis == methods::CurveAxis::kSignalToNoise ? noise : grid.budgets;
  matrix.noise = std::move(noise);
  for (size_t i = 0; i < grid.budgets.size(); ++i) {
    std::vector<double> means, stds;
    for (size_t j = 0; j < columns; ++j) {
      means.push_back(mean(values[i * columns + j]));
      stds.push_back(sample_std(values[i * columns + j]));
    }
    matrix.best.push_back(methods::best_bound(means, grid.bounds));
    matrix.mean.push_back(std::move(means));
    matrix.std.push_back(std::move(stds));
  }
  return matrix;
}

methods::CurveFit fit_matrix(const experiments::FitGrid& grid, const experiments::FitMatrix& matrix) {
  std::vector<methods::CurvePoint> points;
  for (size_t i = 0; i < grid.budgets.size(); ++i) points.push_back({matrix.x[i], grid.bounds[matrix.best[i]]});
  return methods::fit_curve(std::move(points), {.axis = grid.options.axis,
                                                .outliers = grid.options.outliers,
                                                .monotone = grid.options.monotone,
                                                .least = grid.bounds.front(),
                                                .most = grid.bounds.back(),
                                                .grain = grid.largest_ratio()});
}

report::CurveSummary picture_of(const experiments::FitGrid& grid, const config::RunSpec& simulated,
                                const experiments::FitMatrix& matrix, const methods::CurveFit& fit) {
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

void fit(const FitCommand& command) {
  catch_interrupts();
  const experiments::FitGrid grid = experiments::plan_fit(command.config, command.scope);
  const fs::path folder =
      command.out.empty() ? run::default_group_folder(command.config, "fit") : fs::path(command.out);
  std::vector<experiments::Job> jobs = plan_jobs(command, grid, folder / "runs");
  if (grid.proxy_is_client_data()) {
    warn("the curve is learnt from the clients' own dataset: unless {} is public, no budget covers it",
         grid.options.proxy);
  }
  std::vector<double> noise = noise_of_budgets(grid, jobs);
  info("{} budgets × {} bounds × {} repeats = {} runs of {} rounds on {} into {}", grid.budgets.size(),
       grid.bounds.size(), grid.repeats, jobs.size(), grid.rounds, grid.options.proxy, folder.string());
  Leader leader(grid);
  experiments::run_jobs(jobs, {.title = "fit",
                               .threads = resolve_threads(command.jobs),
                               .status = [&](const experiments::Job& job) { return leader.after(job); }});
  if (interrupted()) throw Interrupted("stopped; the same command continues the fit");

  const experiments::FitMatrix matrix = collect(grid, jobs, std::move(noise));
  const methods::CurveFit fitted = fit_matrix(grid, matrix);
  const config::RunSpec& simulated = jobs.front().spec;
  const nlohmann::ordered_json value = experiments::curve_file(grid, simulated, matrix, fitted);
  methods::clip_curve_from(nlohmann::json(value["curve"]), "the fitted curve");
  make_folder(folder);
  write_file_atomically(folder / "curve.json", experiments::readable(value));
  report::write_curve_picture(folder / "curve.png", picture_of(grid, simulated, matrix, fitted));
  if (command.output.json) {
    print_json(nlohmann::json(value));
    return;
  }
  print_text(experiments::describe_fit(grid, matrix, fitted) +
             fmt::format("\ncurve {} (picture beside it); use it with method.curve = \"{}\"\n",
                         (folder / "curve.json").string(), (folder / "curve.json").string()));
}

}  // namespace

void add_fit(Command& program) {
  auto options = std::make_shared<FitCommand>();
  Command command = program.subcommand("fit", "Learn on public data which clipping bound suits which budget");
  add_config_options(command, options->config);
  command.option("--out", options->out, "Folder for the curve and the runs (default: runs/CONFIG-fit)");
  command.option("--jobs", options->jobs, "Runs at once, one thread each (default: all cores)").range(0, 1024);
  command.flag("--quick", options->scope.quick, "A first look: at most 3 budgets, 3 bounds and 3 rounds, once");
  command.flag("--same-data", options->scope.same_data,
               "Allow the clients' own dataset as proxy; only right if it is public");
  add_output_options(command, options->output, "Print curve.json on standard output");
  add_example(command, "sotto fit examples/paper/pac-dp/heart-curve.toml --out runs/heart-curve");
  command.callback([options] { fit(*options); });
}

}  // namespace sotto::cli
