#include "bench/federation.h"

#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "base/random.h"
#include "bench/bare_stream.h"
#include "bench/median.h"
#include "bench/server_process.h"
#include "bench/swarm.h"
#include "bench/temporary_folder.h"
#include "config/load.h"
#include "federation/state_store.h"
#include "io/safetensors.h"
#include "member/member.h"
#include "net/key_folders.h"
#include "remote/client.h"
#include "transport/simulation.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <semaphore>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace sotto::bench {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr double kMegabyte = 1e6;
constexpr int64_t kInputs = 1000;
constexpr int64_t kClasses = 10;
constexpr int kFour = 4;
constexpr double kBytesPerConnection = 160e3;
constexpr double kModels = 10;
constexpr int kWarmUpRounds = 1;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

int64_t upload_repeats(const FederationOptions& options) {
  return options.quick ? 2 : 9;
}

int64_t round_repeats(const FederationOptions& options) {
  return options.quick ? 1 : 7;
}

// A network with one hidden layer on records of `inputs` numbers.
struct Workload {
  int64_t clients = 1;
  int64_t cohort = 1;
  int64_t rounds = 1;
  int64_t inputs = kInputs;
  int64_t hidden = 1000;
  int64_t records = 200;  // to train on

  int64_t parameters() const { return (inputs + 1) * hidden + (hidden + 1) * kClasses; }
  std::string run() const {
    return fmt::format(R"(name = "bench"
rounds = {}
[data]
clients = {}
test_fraction = 0.25
[model]
name = "mlp"
hidden = [{}]
[federation]
cohort = {}
batch = 100
lr = 0.1
eval_every = {}
[method]
name = "ldp-fedavg"
[privacy]
epsilon = 4.0
delta = 1e-5
adjacency = "zero-out"
noise = "secure"
)",
                       rounds, clients, hidden, cohort, rounds);
  }
  std::string config() const {
    return run() + fmt::format(R"([declared]
kind = "features"
shape = [{}]
classes = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]
records = {}
[serve]
quorum = {}
deadline = 600
)",
                               inputs, records, cohort);
  }
};

federation::FederationPlan plan_of(const fs::path& config) {
  return {config::load_run_spec(config, {}), *config::load_table(config, {}, config::kDeclaredTable),
          config::load_table(config, {}, config::kServeTable)};
}

// An authority, and the server that it vouches for.
struct Authority {
  explicit Authority(const fs::path& where) : folder(where) {
    net::make_authority_folder(folder, "bench", {"localhost"}, 1);
  }
  net::KeyPair keys() const { return net::read_authority(folder); }

  fs::path folder;
};

// ---- uploads against a bare stream

struct Cost {
  double seconds = 0;
  double processor = 0;

  Cost& operator+=(const Cost& other) {
    seconds += other.seconds;
    processor += other.processor;
    return *this;
  }
};

json measure_uploads(const FederationOptions& options, const Authority& authority, const BareSink& sink,
                     const fs::path& folder, Progress& progress) {
  const int64_t repeats = upload_repeats(options);
  const Workload workload{.rounds = repeats + kWarmUpRounds, .hidden = options.quick ? 1000 : 16000};
  ServerProcess server(folder, workload.config(), authority.folder);
  const federation::FederationPlan plan = plan_of(server.config());
  const MadeUpUpload upload(plan);
  const fs::path sealed = folder / "sealed";
  write_file_atomically(sealed, upload.bytes());
  const auto bytes = static_cast<int64_t>(upload.bytes().size());
  const net::Identity identity = made_up_identity(authority.keys(), "uploader");
  remote::Client client(server.address(), identity, "uploader");
  BareSender bare(sink.address(), identity);
  const int64_t place = client.join(plan.hash()).client;
  std::vector<double> ratios, upload_rates, bare_rates;
  // Of this process and the one that takes the bytes in.
  const auto timed = [](const auto& other, const auto& act) {
    const double before = other() + processor_seconds(::getpid());
    const auto begin = Clock::now();
    act();
    const double seconds = seconds_since(begin);
    return Cost{seconds, other() + processor_seconds(::getpid()) - before};
  };
  const auto send_bare = [&] {
    return timed([&] { return processor_seconds(sink.process()); }, [&] { bare.send(bytes); });
  };
  Cost all_bare, all_uploads;
  for (int64_t i = 0; i < workload.rounds; ++i) {
    const federation::Work work = client.next(plan.hash());
    const federation::Offer offer{.round = work.round,
                                  .key = upload.key(work.round, place),
                                  .digest = upload.digest(),
                                  .bytes = bytes,
                                  .releases = upload.releases(work.round, place)};
    Cost bare_cost = send_bare();
    federation::Answer answer;
    const Cost cost =
        timed([&] { return server.processor_seconds(); }, [&] { answer = client.deliver(offer, sealed, interrupted); });
    if (answer.verdict != federation::Verdict::kStored) fail_user("an upload was not taken: {}", answer.reason);
    client.next(plan.hash());  // the server is idle again
    bare_cost += send_bare();
    progress.advance();
    if (i < kWarmUpRounds) continue;
    ratios.push_back(bare_cost.seconds / 2 / cost.seconds);
    upload_rates.push_back(static_cast<double>(bytes) / cost.seconds / kMegabyte);
    bare_rates.push_back(2 * static_cast<double>(bytes) / bare_cost.seconds / kMegabyte);
    all_bare += bare_cost;
    all_uploads += cost;
  }
  client.leave();
  server.wait();
  return {{"upload_ratio", median(ratios)},
          {"upload_processor_ratio", all_bare.processor / 2 / all_uploads.processor},
          {"upload_mb_s", median(upload_rates)},
          {"bare_stream_mb_s", median(bare_rates)}};
}

// ---- many connections

struct Crowd {
  int64_t failed = 0;
  std::string failure;
  int64_t uploads = 0;
  int64_t listening = 0;  // bytes in memory
  int64_t idle = 0;       // with all but one connected and waiting
  int64_t peak = 0;
};

Crowd gather(const Workload& workload, const Authority& authority, const fs::path& folder) {
  ServerProcess server(folder, workload.config(), authority.folder);
  const federation::FederationPlan plan = plan_of(server.config());
  Swarm swarm(server.address(), authority.keys(), plan, workload.clients);
  Crowd crowd;
  crowd.listening = server.resident_bytes();
  swarm.join(workload.clients - 1);
  crowd.idle = server.resident_bytes();
  {
    // It ends with the last client, and then nobody can ask any more.
    const std::jthread watch([&](const std::stop_token& ended) {
      while (!ended.stop_requested()) {
        crowd.peak = std::max(crowd.peak, server.peak_resident_bytes());
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      }
    });
    swarm.join(1);
    swarm.wait();
  }
  crowd.failed = swarm.failed();
  if (crowd.failed > 0) crowd.failure = fmt::format("{}; the server: {}", swarm.failure(), server.last_words());
  crowd.uploads = swarm.stored();
  if (crowd.failed == 0) server.wait();
  return crowd;
}

json measure_connections(const FederationOptions& options, const Authority& authority, const fs::path& folder,
                         Progress& progress) {
  Workload workload{.clients = options.connections,
                    .cohort = options.reporters,
                    .rounds = options.rounds,
                    .hidden = options.quick ? 100 : 1000};
  const Crowd few = gather(workload, authority, folder / "few");
  progress.advance();
  workload.cohort = workload.clients;
  const Crowd all = gather(workload, authority, folder / "all");
  progress.advance();
  const double connections = static_cast<double>(options.connections);
  const double model = 4.0 * static_cast<double>(workload.parameters());
  const double listening = static_cast<double>(all.listening);
  const auto expected = options.rounds * (options.connections + options.reporters);
  json figures = {{"connections", options.connections},
                  {"parameters", workload.parameters()},
                  {"failed", few.failed + all.failed},
                  {"uploads", few.uploads + all.uploads},
                  {"server_rss_mb", static_cast<double>(all.peak) / kMegabyte},
                  {"listening_rss_mb", listening / kMegabyte},
                  {"allowed_rss_mb", (listening + kBytesPerConnection * connections + kModels * model) / kMegabyte},
                  {"rss_per_connection_kb", (static_cast<double>(all.idle) - listening) / (connections - 1) / 1e3},
                  {"rss_growth_1000_over_100", static_cast<double>(all.peak) / static_cast<double>(few.peak)}};
  const std::string failure = few.failure.empty() ? all.failure : few.failure;
  if (!failure.empty()) figures["failure"] = failure;
  SOTTO_INVARIANT(!failure.empty() || few.uploads + all.uploads == expected);
  return figures;
}

// ---- four clients that train

std::shared_ptr<models::TaskData> made_up_records(int64_t count, const methods::PublicFacts& facts) {
  const int64_t inputs = facts.task.record_shape.at(0);
  const int64_t classes = facts.task.classes;
  RandomStream stream(1, "records");
  auto data = std::make_shared<models::TaskData>();
  data->dataset.name = "made-up";
  data->dataset.kind = data::Kind::kFeatures;
  data->dataset.class_names = facts.class_names;
  data->dataset.domain_names = {"only"};
  data::Records& records = data->dataset.train;
  records.x = at::empty({count, inputs});
  auto* values = records.x.data_ptr<float>();
  for (int64_t i = 0; i < count * inputs; ++i) values[i] = static_cast<float>(stream.uniform());
  records.y = at::arange(count, at::kLong).remainder(classes);
  records.domain = at::zeros({count}, at::kLong);
  data->task = facts.task;
  return data;
}

// A client's home: what it may spend, its records, and whoever works on them.
class BenchHome {
 public:
  BenchHome(const fs::path& folder, const federation::FederationPlan& plan, int64_t client,
            const std::shared_ptr<const models::TaskData>& data)
      : policy_(policy_for(plan.setup().spec())),
        home_(prepared(folder, policy_),
              {.name = data->dataset.name, .content = std::to_string(client), .dealt = "", .clients = 1}),
        member_(home_, policy_, plan, client, federation::Setup::at_home(plan.setup(), client, data)) {}

  member::Member& member() { return member_; }

 private:
  static member::Policy policy_for(const config::RunSpec& spec) {
    member::Policy policy;
    policy.budget = *spec.privacy;
    policy.methods = {spec.method};
    policy.variants = {"sound"};
    policy.trust = {"local"};
    policy.declare = {"records"};
    return policy;
  }
  static fs::path prepared(const fs::path& folder, const member::Policy& policy) {
    make_folder(folder);
    write_file_atomically(folder / "policy.toml",
                          fmt::format("[budget]\nepsilon = {}\ndelta = {}\nadjacency = \"{}\"\n", policy.budget.epsilon,
                                      policy.budget.delta, settings::word(policy.budget.adjacency)));
    return folder;
  }

  member::Policy policy_;
  privacy::Home home_;
  member::Member member_;
};

// Four clients in step: all of them begin a round's work when they are let, and the round is over when all have been told
// what comes next.
class FourClients {
 public:
  FourClients(const ServerProcess& server, const Authority& authority, const federation::FederationPlan& plan,
              const fs::path& folder, const std::shared_ptr<const models::TaskData>& data, int threads)
      : server_(server), plan_(plan), at_once_(threads) {
    for (int i = 0; i < kFour; ++i) {
      threads_.emplace_back([this, &authority, folder, data, i] {
        try {
          at::set_num_threads(1);
          const std::string name = fmt::format("client-{}", i);
          remote::Client client(server_.address(), made_up_identity(authority.keys(), name), name);
          const int64_t place = client.join(plan_.hash()).client;
          BenchHome home(folder / name, plan_, place, data);
          take_part(client, home.member());
        } catch (...) {
          const std::lock_guard lock(mutex_);
          if (!problem_) problem_ = std::current_exception();
          changed_.notify_all();
        }
      });
    }
    wait_until_told(1);
  }
  ~FourClients() {
    {
      const std::lock_guard lock(mutex_);
      released_ = plan_.setup().spec().rounds + 1;
      ended_ = true;
      changed_.notify_all();
    }
    for (std::thread& thread : threads_) thread.join();
  }
  FourClients(const FourClients&) = delete;
  FourClients& operator=(const FourClients&) = delete;

  // Seconds of the next round.
  double round() {
    const auto begin = Clock::now();
    int64_t next = 0;
    {
      const std::lock_guard lock(mutex_);
      next = ++released_ + 1;
      changed_.notify_all();
    }
    wait_until_told(next);
    return seconds_since(begin);
  }

  // Milliseconds between a broadcast's being there and a client's knowing of it.
  std::vector<double> delays() const { return delays_; }

 private:
  void take_part(remote::Client& client, member::Member& member) {
    while (true) {
      federation::Work work = client.next(plan_.hash());
      while (work.kind == federation::Work::Kind::kNothing) work = client.next(plan_.hash());
      const auto now = std::chrono::system_clock::now();
      const bool is_over = work.kind == federation::Work::Kind::kOver;
      const int64_t round = is_over ? work.round + 1 : work.round;
      tell(round, now);
      if (is_over) break;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return released_ >= round; });
        if (ended_) return;
      }
      const methods::Broadcast broadcast{
          round - 1, clone(io::parse_safetensors(client.fetch(work.digest, work.bytes), "the broadcast").tensors)};
      at_once_.acquire();
      const member::Outcome outcome = member.work(broadcast);
      at_once_.release();
      if (!outcome.upload) fail_user("a client sends nothing: {}", outcome.why);
      client.deliver(*outcome.upload, outcome.upload->file, interrupted);
      member.settle(work.durable_round);
    }
    client.leave();
  }

  void tell(int64_t round, std::chrono::system_clock::time_point when) {
    struct stat status {};
    const fs::path file = server_.folder() / "broadcast" / fmt::format("{:06}.safetensors", round - 1);
    const bool known = ::stat(file.c_str(), &status) == 0;
    const std::lock_guard lock(mutex_);
    if (known && round > 1) {
      const auto there = std::chrono::seconds(status.st_ctim.tv_sec) + std::chrono::nanoseconds(status.st_ctim.tv_nsec);
      delays_.push_back(std::chrono::duration<double, std::milli>(when.time_since_epoch() - there).count());
    }
    ++told_[round];
    changed_.notify_all();
  }

  void wait_until_told(int64_t round) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return problem_ || told_[round] == kFour; });
    if (problem_) std::rethrow_exception(problem_);
  }

  const ServerProcess& server_;
  const federation::FederationPlan& plan_;
  std::counting_semaphore<> at_once_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t released_ = 0;  // the last round that may be worked on
  bool ended_ = false;
  std::map<int64_t, int> told_;
  std::vector<double> delays_;
  std::exception_ptr problem_;
  std::vector<std::thread> threads_;
};

json measure_four_clients(const FederationOptions& options, const Authority& authority, const fs::path& folder,
                          Progress& progress) {
  const int64_t repeats = round_repeats(options);
  const Workload workload{.clients = kFour,
                          .cohort = kFour,
                          .rounds = repeats + kWarmUpRounds,
                          .hidden = options.quick ? 100 : 1000,
                          .records = options.quick ? 300 : 2400};
  const int threads = std::min(kFour, available_threads());
  ServerProcess server(folder, workload.config(), authority.folder);
  const federation::FederationPlan plan = plan_of(server.config());
  const int64_t held = workload.records * 4 / 3;  // with those that are held out
  const auto own = made_up_records(held, plan.setup().facts());
  const federation::Setup setup(config::parse_run_spec(workload.run(), "the workload", {}),
                                made_up_records(kFour * held, plan.setup().facts()));
  const auto states = federation::make_memory_store({});
  privacy::Ledger ledger;
  transport::Simulation simulation(setup, *states, ledger, {.threads = threads});
  std::vector<double> overheads, training;
  std::vector<double> delays;
  {
    FourClients clients(server, authority, plan, folder, own, threads);
    for (int64_t i = 0; i < workload.rounds; ++i) {
      // In turns, so that neither a drift of the machine nor the order favours one.
      std::optional<double> apart;
      if (i % 2 == 0) apart = clients.round();
      const double together = simulation.next_round()->seconds;
      if (!apart) apart = clients.round();
      progress.advance();
      if (i < kWarmUpRounds) continue;
      overheads.push_back(*apart / together - 1);
      training.push_back(together);
    }
    delays = clients.delays();
  }
  server.wait();
  return {{"overhead_four_clients", median(overheads)},
          {"training_s", median(training)},
          {"idle_to_work_ms", median(delays)},
          {"idle_to_work_worst_ms", *std::max_element(delays.begin(), delays.end())}};
}

// ---- sealing

// As in examples/hospitals, with made-up records in the place of the hospitals' own.
constexpr const char* kHospitals = R"(name = "hospitals"
rounds = 8
[data]
clients = 4
test_fraction = 0.25
[model]
name = "logistic"
[federation]
batch = 92
lr = 0.5
local_epochs = 1
[method]
name = "ldp-fedavg"
[privacy]
epsilon = 4.0
delta = 1e-5
adjacency = "zero-out"
unit = "record"
noise = "secure"
[declared]
kind = "features"
shape = [32]
classes = ["absent", "present"]
records = 170
least_records = 80
[serve]
quorum = 4
deadline = 120
)";
constexpr int64_t kHospitalRecords = 303;  // of the largest hospital, some of them held out

json measure_sealing(const FederationOptions& options, const fs::path& folder, Progress& progress) {
  make_folder(folder);
  write_file_atomically(folder / "config.toml", std::string_view(kHospitals));
  const federation::FederationPlan plan = plan_of(folder / "config.toml");
  const auto data = made_up_records(kHospitalRecords, plan.setup().facts());
  std::vector<double> shares, sealing, steps;
  for (int home = 0; home < (options.quick ? 1 : 7); ++home) {
    BenchHome hospital(folder / std::to_string(home), plan, 0, data);
    methods::Broadcast broadcast = plan.setup().method().make_server(plan.setup().context())->open();
    for (; broadcast.round < plan.setup().spec().rounds; ++broadcast.round) {
      const auto begin = Clock::now();
      const member::Outcome outcome = hospital.member().work(broadcast);
      const double step = seconds_since(begin);
      hospital.member().settle(broadcast.round + 1);
      if (broadcast.round < kWarmUpRounds) continue;
      shares.push_back(outcome.sealing_seconds / step);
      sealing.push_back(outcome.sealing_seconds);
      steps.push_back(step);
    }
  }
  progress.advance();
  return {{"sealing_share", median(shares)}, {"sealing_ms", 1e3 * median(sealing)}, {"step_ms", 1e3 * median(steps)}};
}

}  // namespace

json measure_federation(const FederationOptions& given) {
  FederationOptions options = given;
  if (options.quick) {
    options.connections = std::min<int64_t>(options.connections, 40);
    options.reporters = std::min<int64_t>(options.reporters, 10);
    options.rounds = 1;
  }
  if (options.reporters > options.connections) fail_user("--reporters cannot be more than --connections");
  at::set_num_threads(1);
  const TemporaryFolder folder(options.folder);
  const Authority authority(folder.path() / "certs");
  const BareSink sink(net::read_server(authority.folder), authority.keys().certificate_pem);
  struct Part {
    const char* name;
    std::function<json(const fs::path&, Progress&)> measure;
    int64_t steps;
  };
  const std::vector<Part> parts{
      {"uploads", [&](const auto& where, auto& bar) { return measure_uploads(options, authority, sink, where, bar); },
       kWarmUpRounds + upload_repeats(options)},
      {"sealing", [&](const auto& where, auto& bar) { return measure_sealing(options, where, bar); }, 1},
      {"four-clients",
       [&](const auto& where, auto& bar) { return measure_four_clients(options, authority, where, bar); },
       kWarmUpRounds + round_repeats(options)},
      {"connections", [&](const auto& where, auto& bar) { return measure_connections(options, authority, where, bar); },
       2}};
  const auto wanted = [&](const Part& part) { return options.only.empty() || options.only == part.name; };
  int64_t steps = 0;
  for (const Part& part : parts) steps += wanted(part) ? part.steps : 0;
  Progress progress("bench", steps);
  json figures = json::object();
  for (const Part& part : parts) {
    if (wanted(part)) figures.update(part.measure(folder.path() / part.name, progress));
  }
  return figures;
}

}  // namespace sotto::bench
