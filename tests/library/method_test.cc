#include "work_folder.h"

#include <ATen/ATen.h>

#include <sotto/method.h>
#include <sotto/privacy.h>
#include <sotto/run.h>

#include <atomic>
#include <cmath>
#include <cstring>

namespace sotto {
namespace {

// The mean of the clients' models, doubled at the end of `rounds`.
class CountingServer : public Server {
 public:
  explicit CountingServer(const PublicContext& context) : average_(averaging_server(context)) {}
  Broadcast open() override { return average_->open(); }
  void accept(const Upload& upload) override {
    EXPECT_TRUE(find(upload.values(), "records").defined());
    average_->accept(upload);
  }
  Broadcast aggregate(int64_t round) override {
    rounds_ += 1;
    return average_->aggregate(round);
  }
  Tensors state() const override { return {{"rounds", at::scalar_tensor(rounds_)}}; }
  void restore(const Broadcast& last, const Tensors& state) override {
    rounds_ = find(state, "rounds").item<double>();
    EXPECT_EQ(rounds_, static_cast<double>(last.round));
    average_->restore(last, {});
  }

 private:
  std::unique_ptr<Server> average_;
  double rounds_ = 0;
};

Channel model_in_the_clear(const PublicContext& context, const ClientFacts& client) {
  return {.what = "model",
          .like = context.initial_model(),
          .in_the_clear = "for a test",
          .times = client.participations,
          .declared = {{"records", static_cast<double>(client.records)}}};
}

// FedProx in the words of the public headers.
Method proximal() {
  return {.name = "test-proximal",
          .what = "FedProx",
          .read_options = [](Settings& settings) { return std::any(settings.number("mu", 0.01, 0)); },
          .step =
              [](Step& step) {
                const at::Tensor anchor = step.parameters().clone();
                const double mu = step.options<double>();
                step.train([&](const at::Tensor& parameters, at::Tensor& gradient) {
                  gradient.add_(parameters - anchor, mu);
                });
                step.release(model_in_the_clear(step, step.facts()), [&] { return step.model(); });
              },
          .plan = [](const PublicContext& context,
                     const ClientFacts& client) { return std::vector{model_in_the_clear(context, client)}; }};
}

Channel noisy_channel(const PublicContext& context, const ClientFacts& client) {
  return {.what = "update",
          .like = context.initial_model(),
          .bound = 0.5,
          .noise_multiplier = context.noise_multiplier(client, client.participations),
          .times = client.participations};
}

Tensors difference(const Step& step) {
  Tensors update;
  for (const auto& [name, value] : step.model()) update.emplace_back(name, value - find(step.broadcast(), name));
  return update;
}

Method noisy(const std::string& name, const std::function<Tensors(Step&)>& compute) {
  return {
      .name = name,
      .what = "whole updates with noise",
      .step = [compute](Step& step) { step.release(noisy_channel(step, step.facts()), [&] { return compute(step); }); },
      .plan = [](const PublicContext& context,
                 const ClientFacts& client) { return std::vector{noisy_channel(context, client)}; },
      .make_server = updating_server};
}

// How a feature of each class looks on average: one vector per record.
Channel means_channel(const PublicContext& context, const ClientFacts& client) {
  return {.what = "means",
          .like = {{"means", at::zeros({context.classes(), 64})}},
          .bound = 1,
          .noise_multiplier = context.noise_multiplier(client, client.participations),
          .per_record = true,
          .divisor = 10,
          .times = client.participations};
}

constexpr const char* kPrivacy = "[privacy]\nepsilon = 4\ndelta = 1e-5\nadjacency = \"replace\"\n";

class LibraryMethod : public WorkFolder {
 protected:
  static void SetUpTestSuite() {
    add_method({.name = "test-counting", .what = "FedAvg that counts", .make_server = [](const PublicContext& context) {
                  return std::make_unique<CountingServer>(context);
                }});
    add_method(proximal());
    add_method(noisy("test-noisy", [](Step& step) {
      step.train();
      return difference(step);
    }));
    add_method(noisy("test-diverging", [](Step& step) {
      EXPECT_TRUE(step.train([](const at::Tensor&, at::Tensor& gradient) { gradient.fill_(NAN); }).diverged);
      return difference(step);
    }));
    add_method(noisy("test-other-shapes", [](Step&) { return Tensors{{"surprise", at::zeros({1})}}; }));
    add_method(noisy("test-twice", [](Step& step) {
      step.release(noisy_channel(step, step.facts()), [&] { return difference(step); });
      return difference(step);
    }));
    add_method(noisy("test-raising", [](Step&) -> Tensors { throw Error("the program's own mistake"); }));
  }

  RunSummary run(const std::string& method, const std::string& tables = "", const std::string& folder = "run",
                 int threads = 1) {
    sotto::Run run(
        {.config = config(tables), .set = {"method.name=" + method}, .folder = at(folder), .threads = threads});
    while (run.next_round()) {
    }
    last_ = run.broadcast();
    return run.finish();
  }
  std::string mistake(const std::string& method, const std::string& tables = "") {
    std::filesystem::remove_all(at("mistake"));
    try {
      run(method, tables, "mistake");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  Tensors last_;
};

TEST_F(LibraryMethod, KeepsWhatItDoesNotSayOfTheMethodItIsBasedOn) {
  const RunSummary own = run("test-counting");
  const Tensors own_model = last_;
  const RunSummary fedavg = run("fedavg", "", "fedavg", 2);
  EXPECT_EQ(own.method, "test-counting");
  EXPECT_EQ(own.evaluation.mean_accuracy, fedavg.evaluation.mean_accuracy);
  for (const auto& [name, value] : last_) EXPECT_TRUE(at::equal(value, find(own_model, name))) << name;
}

TEST_F(LibraryMethod, IsResumedWithItsState) {
  {
    sotto::Run run({.config = config(), .set = {"method.name=test-counting"}, .folder = at("run")});
    run.next_round();
    stop_runs();
    run.next_round();
    stop_runs(false);
  }
  sotto::Run rest({.config = config(), .set = {"method.name=test-counting"}, .folder = at("run"), .resume = true});
  EXPECT_EQ(rest.next_round()->round, 3);
}

TEST_F(LibraryMethod, TrainsWithATermOfItsOwn) {
  run("test-proximal", "[method]\nmu = 0.5\n");
  const Tensors own = last_;
  run("fedprox", "[method]\nmu = 0.5\n", "fedprox");
  for (const auto& [name, value] : last_) EXPECT_TRUE(at::equal(value, find(own, name))) << name;
  EXPECT_NE(mistake("test-proximal", "[method]\nmu = -1\n").find("method.mu must be"), std::string::npos);
  EXPECT_NE(mistake("test-proximal", "[method]\nnu = 1\n").find("mu"), std::string::npos);
}

TEST_F(LibraryMethod, PaysForWhatItReleases) {
  const RunSummary summary = run("test-noisy", kPrivacy);
  ASSERT_TRUE(summary.privacy.proven);
  EXPECT_LE(summary.privacy.proven->max, 4);
  EXPECT_GT(summary.privacy.proven->min, 3.9);
  const auto rows = Ledger(at("run")).rows();
  ASSERT_EQ(rows.size(), 12u);  // 3 clients, 4 rounds
  EXPECT_EQ(rows[0].what, "update");
  EXPECT_NEAR(rows[0].sensitivity, 2 * 0.5, 0.01);
  const auto planned = plan({.config = config(kPrivacy), .set = {"method.name=test-noisy"}});
  ASSERT_EQ(planned.size(), 1u);
  EXPECT_EQ(planned[0].times, 4);
  EXPECT_NEAR(planned[0].noise_multiplier, rows[0].noise_scale / rows[0].sensitivity, 1e-9);
  EXPECT_NE(mistake("test-noisy").find("[privacy]"), std::string::npos);
}

TEST_F(LibraryMethod, SendsNoiseWhateverBecameOfTraining) {
  const RunSummary summary = run("test-diverging", kPrivacy);
  EXPECT_EQ(summary.diverged_steps, 0);
  EXPECT_EQ(Ledger(at("run")).rows().size(), 12u);
  for (const auto& [name, value] : last_) EXPECT_TRUE(at::isfinite(value).all().item<bool>()) << name;
}

TEST_F(LibraryMethod, BoundsEachRecord) {
  std::atomic<int64_t> records = 0;
  add_method({.name = "test-means",
              .what = "noisy sums of records by class",
              .step =
                  [&](Step& step) {
                    step.release(means_channel(step, step.facts()), [&] {
                      const auto [x, y] = step.records();
                      records += x.size(0);
                      const at::Tensor pixels = at::adaptive_avg_pool2d(x.mean(1, true), {8, 8}).reshape({-1, 1, 64});
                      return Tensors{{"means", at::one_hot(y, step.classes()).to(at::kFloat).unsqueeze(2) * pixels}};
                    });
                  },
              .plan = [](const PublicContext& context,
                         const ClientFacts& client) { return std::vector{means_channel(context, client)}; },
              .make_server = [](const PublicContext& context) { return averaging_server(context); }});
  const RunSummary summary = run("test-means", kPrivacy);
  EXPECT_GT(records, 0);
  EXPECT_LE(summary.privacy.proven->max, 4);
  EXPECT_NEAR(Ledger(at("run")).rows()[0].sensitivity, 2 * 1.0 / 10, 0.01);
}

TEST_F(LibraryMethod, ExplainsMistakes) {
  EXPECT_NE(mistake("test-other-shapes", kPrivacy).find("update: "), std::string::npos);
  EXPECT_NE(mistake("test-twice", kPrivacy).find("a step releases once"), std::string::npos);
  EXPECT_EQ(mistake("test-raising", kPrivacy), "the program's own mistake");
  EXPECT_THROW(add_method({.name = "fedavg", .what = "x", .make_server = averaging_server}), Error);
  EXPECT_THROW(add_method({.name = "test-counting", .what = "x", .make_server = averaging_server}), Error);
  EXPECT_THROW(add_method({.name = "", .what = "x", .make_server = averaging_server}), Error);
  EXPECT_THROW(add_method({.name = "a", .what = "x", .based_on = "nothing", .make_server = averaging_server}), Error);
  EXPECT_THROW(add_method({.name = "a", .what = "x", .step = [](Step&) {}}), Error);
  EXPECT_THROW(add_method({.name = "a", .what = "x"}), Error);
}

// It could send on what it was trusted with.
TEST_F(LibraryMethod, IsNotTrustedWithValuesWithoutNoise) {
  add_method({.name = "test-trusting", .what = "x", .based_on = "dp-fedavg", .make_server = averaging_server});
  const std::string why = mistake("test-trusting",
                                  "[privacy]\nepsilon = 4\ndelta = 1e-5\nadjacency = \"replace\"\nunit = "
                                  "\"client\"\nobserver = \"clients\"\n");
  EXPECT_NE(why.find("is not trusted"), std::string::npos) << why;
}

}  // namespace
}  // namespace sotto
