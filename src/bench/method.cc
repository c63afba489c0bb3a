#include "bench/method.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "base/progress.h"
#include "base/statistics.h"
#include "base/text.h"
#include "bench/median.h"
#include "config/load.h"
#include "methods/catalogue.h"
#include "privacy/ledger.h"
#include "run/config_source.h"
#include "transport/simulation.h"

#include <ATen/Parallel.h>

#include <nlohmann/json.hpp>

#include <ctime>
#include <memory>

namespace sotto::bench {
namespace {

using nlohmann::json;

constexpr int kWarmUpRounds = 2;
constexpr double kConfidence = 0.95;

// Rounds of some tens of milliseconds: short enough that what else the machine does falls on both methods alike.
constexpr const char* kWorkload = R"(
name = "bench"
[data]
name = "synthetic-digits"
clients = 2
partition = "resample"
records_per_client = 128
[model]
name = "cnn"
[federation]
batch = 32
lr = 0.1
[privacy]
epsilon = 4.0
delta = 1e-5
adjacency = "zero-out"
)";

bool concerns_method(const std::string& override) {
  return override.starts_with("method.");
}

struct Overrides {
  std::vector<std::string> of_method;
  std::vector<std::string> of_both;
};

Overrides divided(const std::vector<std::string>& overrides) {
  Overrides result;
  for (const std::string& override : overrides) {
    (concerns_method(override) ? result.of_method : result.of_both).push_back(override);
  }
  return result;
}

config::RunSpec shared_spec(const MethodOptions& options, const std::vector<std::string>& overrides) {
  if (options.config.empty()) {
    return config::parse_run_spec(kWorkload, "the built-in workload", overrides);
  }
  return run::load_spec({options.config, overrides});
}

// The workload with `method`. A method that the config names itself keeps its keys, any other begins with its defaults.
config::RunSpec spec_of(const MethodOptions& options, const std::string& method, const std::vector<std::string>& own) {
  const methods::MethodEntry& entry = methods::find_method(method);
  std::vector<std::string> overrides = divided(options.overrides).of_both;
  config::RunSpec spec = shared_spec(options, overrides);
  if (!options.config.empty() && spec.method == method) {
    overrides.insert(overrides.end(), own.begin(), own.end());
    spec = shared_spec(options, overrides);
  } else {
    const config::RunSpec bare = config::parse_run_spec(
        fmt::format("name = \"bench\"\n[method]\nname = \"{}\"\n{}\n", method, join(entry.example_options, "\n")),
        fmt::format("method {}", method), own);
    spec.method = bare.method;
    spec.variant = bare.variant;
    spec.options = bare.options;
    spec.method_options = bare.method_options;
  }
  if (spec.method != method) fail_user("method.name is what sotto bench method compares: leave it out of --set");
  // A benchmark promises nothing, and compares with what has no noise.
  if (spec.privacy) spec.privacy->unproven = {"model", "prompts", "prototypes", "dimensions"};
  spec.rounds = kWarmUpRounds + 2 * options.repeats + 1;  // the last, which would be evaluated, is not run
  spec.federation.eval_every = spec.rounds;
  spec.record.checkpoint_every = spec.rounds;
  return spec;
}

// Seconds that all threads of this process have computed.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Training, transport and aggregation.
struct RoundTime {
  double processor = 0;
  double wall = 0;

  RoundTime operator+(const RoundTime& other) const { return {processor + other.processor, wall + other.wall}; }
};

// A federation whose rounds are asked for one at a time.
class TimedFederation {
 public:
  TimedFederation(const config::RunSpec& spec, int threads)
      : setup_(spec),
        states_(federation::make_memory_store({})),
        simulation_(setup_, *states_, ledger_, {.threads = threads}) {}

  RoundTime next_round() {
    if (interrupted()) throw Interrupted("interrupted: start the benchmark again");
    const double before = processor_seconds();
    const auto record = simulation_.next_round();
    const size_t missing = record->abstained.size() + record->diverged.size();
    if (missing > 0) {
      fail_user("{} of {} clients of {} do not train in round {}: its rounds are not whole and cannot be compared",
                missing, record->cohort, setup_.spec().method, record->round);
    }
    return {processor_seconds() - before, record->seconds};
  }

 private:
  federation::Setup setup_;
  std::unique_ptr<federation::StateStore> states_;
  privacy::Ledger ledger_;
  transport::Simulation simulation_;
};

}  // namespace

json measure_method(const MethodOptions& options) {
  const std::vector<std::string> own = divided(options.overrides).of_method;
  for (const std::string& override : options.against_overrides) {
    if (!concerns_method(override)) {
      fail_user("--set-against {}: only method.* can differ; what both share is given by --set", override);
    }
  }
  at::set_num_threads(1);
  TimedFederation method(spec_of(options, options.method, own), options.threads);
  TimedFederation against(spec_of(options, options.against, options.against_overrides), options.threads);
  for (int i = 0; i < kWarmUpRounds; ++i) {
    method.next_round();
    against.next_round();
  }
  std::vector<double> method_seconds, against_seconds, ratios, wall_ratios;
  Progress progress("bench", options.repeats);
  for (int64_t i = 0; i < options.repeats; ++i) {
    // There and back, so that neither a drift of the machine nor the order favours one.
    const RoundTime first = method.next_round();
    const RoundTime other = against.next_round() + against.next_round();
    const RoundTime both = first + method.next_round();
    method_seconds.push_back(both.processor / 2);
    against_seconds.push_back(other.processor / 2);
    ratios.push_back(both.processor / other.processor);
    wall_ratios.push_back(both.wall / other.wall);
    progress.advance();
  }
  const Interval interval = median_interval(ratios, kConfidence);
  const Interval half = {quantile(ratios, 0.25), quantile(ratios, 0.75)};
  return {{"method", options.method},
          {"against", options.against},
          {"repeats", options.repeats},
          {"threads", options.threads},
          {"seconds_per_round", median(method_seconds)},
          {"against_seconds_per_round", median(against_seconds)},
          {"ratio", median(ratios)},
          {"ratio_low", interval.low},
          {"ratio_high", interval.high},
          {"spread", half.high - half.low},
          {"wall_ratio", median(wall_ratios)}};
}

}  // namespace sotto::bench
