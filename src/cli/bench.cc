// sotto bench: what a step costs, as ratios within one run.
#include "base/table.h"
#include "bench/account.h"
#include "bench/dpsgd.h"
#include "bench/federation.h"
#include "bench/method.h"
#include "bench/noise.h"
#include "bench/prompt.h"
#include "bench/simulate.h"
#include "bench/vpdr.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/config_options.h"
#include "cli/output.h"
#include "transport/ranks.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <functional>
#include <memory>
#include <string>

namespace sotto::cli {
namespace {

using nlohmann::json;

void print_figures(const json& figures, const OutputOptions& output) {
  if (output.json) {
    print_json(figures);
    return;
  }
  Table table({"figure", "value"});
  for (const auto& [name, figure] : figures.items()) {
    table.add_row({name, figure.is_number_float() ? fmt::format("{:.4g}", figure.get<double>())
                         : figure.is_string()     ? figure.get<std::string>()
                                                  : figure.dump()});
  }
  print_text(table.to_string());
}

// The last options of every benchmark, and its callback: measure, then print.
void add_measurement(Command& command, const std::string& example, const std::function<json()>& measure,
                     const std::string& json_help = "Print the figures as JSON") {
  auto output = std::make_shared<OutputOptions>();
  add_output_options(command, *output, json_help);
  add_example(command, example);
  command.callback([output, measure] {
    if (const json figures = measure(); !figures.is_null()) print_figures(figures, *output);
  });
}

void add_simulate(Command& parent) {
  auto options = std::make_shared<bench::SimulateOptions>();
  Command command = parent.subcommand(
      "simulate", "100 clients × 600 Fashion-MNIST images, 10 a round, against bare loops of the same steps");
  command.option("--clients", options->clients, "Registered clients").range(10, 1 << 30);
  command.option("--repeats", options->repeats, "Interleaved repetitions; medians are reported").range(1, 1000);
  command.flag("--engine-only", options->engine_only, "Skip the bare loops, e.g. to compare peak memory");
  add_threads_option(command, options->threads);
  add_measurement(command, "sotto bench simulate --json", [options] {
    const auto ranks = transport::open_ranks();
    return ranks ? bench::measure_simulation(*options, *ranks) : bench::measure_simulation(*options);
  });
}

void add_dpsgd(Command& parent) {
  auto options = std::make_shared<bench::DpsgdOptions>();
  Command command = parent.subcommand(
      "dpsgd", "A private step (per-example clipping, noise, update) against a plain step of the same model");
  command.option("--model", options->model, "cnn (batch 256), mlp (1024), vit (64) or resnet18 (32)")
      .one_of({"cnn", "mlp", "vit", "resnet18"});
  command.option("--lora", options->lora, "Train low-rank paths of this rank, and the head; 0 = the whole model")
      .range(0, 1 << 10);
  command.option("--batch", options->batch, "Records per step").range(1, 1 << 20);
  command.option("--slots", options->slots, "Records per pass of a private step; 0 = chosen").range(0, 64);
  command.option("--seconds", options->seconds, "About how long to measure").range(0.1, 3600.0);
  command.option("--threads", options->threads, "Intra-op threads; an engine's client has one").range(1, 1024);
  add_measurement(command, "sotto bench dpsgd --model cnn --json",
                  [options] { return bench::measure_dpsgd(*options); });
}

void add_noise(Command& parent) {
  auto options = std::make_shared<bench::NoiseOptions>();
  Command command =
      parent.subcommand("noise", "Secure Gaussian noise added to floats, against torch::randn, on one core");
  command.option("--values", options->values, "How many floats").range(1000, 1 << 30);
  command.option("--repeats", options->repeats, "Interleaved repetitions; medians are reported").range(1, 10000);
  add_measurement(command, "sotto bench noise --json", [options] { return bench::measure_noise(*options); });
}

void add_accountants(Command& parent) {
  Command command = parent.subcommand("account", "Time the accountants: medians of repeated questions");
  add_measurement(command, "sotto bench account --json", bench::measure_accountants, "Print the times as JSON");
}

void add_method(Command& parent) {
  auto options = std::make_shared<bench::MethodOptions>();
  Command command = parent.subcommand("method", "Rounds of one method against rounds of another, in turns");
  command.option("NAME", options->method, "The method").required();
  command.option("--against", options->against, "The method to compare it with").required();
  command.option("--config", options->config,
                 "TOML file both can run, whose method.name is replaced (default: a small private federation)");
  command
      .option("--set", options->overrides,
              "Override one setting (repeatable); method.* is for NAME, anything else for both")
      .repeatable();
  command.option("--set-against", options->against_overrides, "Override one method.* of the other (repeatable)")
      .repeatable();
  command
      .option("--repeats", options->repeats,
              "Repetitions of two rounds each; the median of their ratios is reported with its 95 % interval")
      .range(6, 100'000);
  command.option("--threads", options->threads, "Clients trained at once").range(1, 1024);
  add_measurement(command, "sotto bench method ldp-fedavg --against fedavg",
                  [options] { return bench::measure_method(*options); });
}

void add_vpdr(Command& parent) {
  auto options = std::make_shared<bench::VpdrOptions>();
  Command command = parent.subcommand(
      "vpdr", "What VPP adds to making prototypes and DCR to fine-tuning, on a ViT-tiny with adapters");
  command.option("--batch", options->batch, "Records").range(16, 4096).shows_default();
  command.option("--patch", options->patch, "Pixels of a patch, of 32").range(2, 32).shows_default();
  command.option("--repeats", options->repeats, "Times each stage is run").range(1, 1000).shows_default();
  add_measurement(command, "sotto bench vpdr --json", [options] { return bench::measure_vpdr(*options); });
}

void add_prompt(Command& parent) {
  auto options = std::make_shared<bench::PromptOptions>();
  Command command = parent.subcommand(
      "prompt", "Private steps on prompts, bounded at text features and at prompts, against the plain step");
  command.option("--encoder", options->encoder, "resnet50-minilm, tiny, or the file of a CLIP model").shows_default();
  command.option("--classes", options->classes, "Classes").range(2, 10'000);
  command.option("--batch", options->batch, "Records of a step").range(1, 10'000);
  command.option("--length", options->length, "Vectors of a prompt").range(1, 64);
  command.option("--rank", options->rank, "Rank of the local prompt's factors").range(1, 64);
  command.option("--repeats", options->repeats, "Repetitions; medians are reported").range(1, 1001);
  command.option("--threads", options->threads, "Threads").range(1, 1024);
  add_measurement(command, "sotto bench prompt --encoder tiny", [options] { return bench::measure_prompt(*options); });
}

void add_federation(Command& parent) {
  auto options = std::make_shared<bench::FederationOptions>();
  Command command = parent.subcommand(
      "federation", "A federation between processes: uploads, a thousand connections, four clients, sealing");
  command.option("--connections", options->connections, "Clients at a time").range(2, 10'000).shows_default();
  command.option("--reporters", options->reporters, "Of a round, against one in which everybody reports")
      .range(1, 10'000)
      .shows_default();
  command.option("--rounds", options->rounds, "Of either").range(1, 100).shows_default();
  command.option("--folder", options->folder,
                 "Where files are kept meanwhile, 4 MB a connection (default: where temporary files go)");
  command.option("--only", options->only, "One part of it")
      .one_of({"uploads", "sealing", "four-clients", "connections"});
  command.flag("--quick", options->quick, "Small models and 40 connections: to see that it works, not to measure");
  add_measurement(command, "sotto bench federation --json", [options] { return bench::measure_federation(*options); });
}

}  // namespace

void add_bench(Command& program) {
  Command command = program.subcommand("bench", "Measure speed against something else in the same run");
  command.require_subcommand();
  add_simulate(command);
  add_dpsgd(command);
  add_noise(command);
  add_accountants(command);
  add_method(command);
  add_vpdr(command);
  add_prompt(command);
  add_federation(command);
}

}  // namespace sotto::cli
