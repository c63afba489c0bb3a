#include "serve/metrics.h"

#include "base/clock.h"
#include "base/error.h"
#include "methods/run_settings.h"

#include <httplib.h>
#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace sotto::serve {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

MetricFamily number(std::string name, std::string help, MetricType type, double value) {
  MetricFamily family{.name = std::move(name), .help = std::move(help), .type = type, .metric = {}};
  prometheus::ClientMetric metric;
  if (type == MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  family.metric.push_back(std::move(metric));
  return family;
}

// How many take part is then as secret as who, round by round, and what they send adds up to it.
bool cohorts_are_secret(const config::RunSpec& spec) {
  return methods::hides_cohorts(spec.federation.sampling) && methods::expected_cohort(spec) < spec.data.clients;
}

// Reads the hub whenever somebody asks; rounds that are over are counted as they end.
class Collected {
 public:
  Collected(Hub& hub, const federation::FederationPlan& plan) : hub_(hub), plan_(plan) {}

  void round_done(const federation::RoundRecord& record) {
    const std::lock_guard lock(mutex_);
    ++rounds_;
    seconds_ += record.seconds;
    bytes_ += static_cast<double>(record.upload_bytes);
  }

  std::vector<MetricFamily> collect() const {
    int64_t members = 0;
    int64_t here = 0;
    int64_t uploads = 0;
    for (const MemberStatus& member : hub_.status()) {
      uploads += member.participations;
      if (member.revoked) continue;
      ++members;
      here += seconds_now() - member.last_seen <= kHereWithin ? 1 : 0;
    }
    const config::RunSpec& spec = plan_.setup().spec();
    const auto gauge = [](const char* name, const char* help, int64_t value) {
      return number(name, help, MetricType::Gauge, static_cast<double>(value));
    };
    std::vector<MetricFamily> all{
        gauge("sotto_rounds_planned", "Rounds of the federation", spec.rounds),
        gauge("sotto_round_open", "The round that waits for uploads; 0 if none does", hub_.open_round()),
        gauge("sotto_places", "Clients that the plan has room for", spec.data.clients),
        gauge("sotto_members", "Clients that have joined and were not revoked", members),
        gauge("sotto_members_here", "Of these, heard of within two minutes", here),
        number("sotto_rounds_done_total", "Rounds that are durable", MetricType::Counter,
               static_cast<double>(hub_.durable_round()))};
    const std::lock_guard lock(mutex_);
    if (!cohorts_are_secret(spec)) {
      all.push_back(number("sotto_uploads_total", "Uploads that are here or were folded", MetricType::Counter,
                           static_cast<double>(uploads)));
      all.push_back(number("sotto_upload_bytes_total",
                           "Bytes of tensors in the uploads of rounds that ended in this process", MetricType::Counter,
                           bytes_));
    }
    MetricFamily family{.name = "sotto_round_seconds",
                        .help = "How long rounds took that ended in this process",
                        .type = MetricType::Summary,
                        .metric = {}};
    prometheus::ClientMetric metric;
    metric.summary.sample_count = rounds_;
    metric.summary.sample_sum = seconds_;
    family.metric.push_back(std::move(metric));
    all.push_back(std::move(family));
    return all;
  }

 private:
  Hub& hub_;
  const federation::FederationPlan& plan_;
  mutable std::mutex mutex_;
  uint64_t rounds_ = 0;
  double seconds_ = 0;
  double bytes_ = 0;
};

}  // namespace

// A web server of its own with ordinary threads: that of prometheus-cpp asks for stacks too small for what libtorch keeps
// in each thread.
struct Metrics::Parts {
  Parts(Hub& hub, const federation::FederationPlan& plan) : collected(hub, plan) {}

  Collected collected;
  httplib::Server server;
  int port = -1;
  std::thread thread;
};

Metrics::Metrics(Hub& hub, const federation::FederationPlan& plan, const std::string& address)
    : parts_(std::make_unique<Parts>(hub, plan)) {
  const size_t colon = address.rfind(':');
  const std::string port = colon == std::string::npos ? "" : address.substr(colon + 1);
  if (port.empty() || port.size() > 5 || port.find_first_not_of("0123456789") != std::string::npos) {
    fail_user("--metrics: '{}' is no address: write HOST:PORT", address);
  }
  parts_->server.Get("/metrics", [parts = parts_.get()](const httplib::Request&, httplib::Response& response) {
    response.set_content(prometheus::TextSerializer().Serialize(parts->collected.collect()),
                         "text/plain; version=0.0.4; charset=utf-8");
  });
  parts_->server.new_task_queue = [] { return new httplib::ThreadPool(2); };
  const std::string host = address.substr(0, colon);
  const int wanted = std::stoi(port);
  if (wanted == 0) {
    parts_->port = parts_->server.bind_to_any_port(host);
  } else if (parts_->server.bind_to_port(host, wanted)) {
    parts_->port = wanted;
  }
  if (parts_->port < 0) {
    fail_user("--metrics: cannot listen on {}: it is in use, or not an address of this machine", address);
  }
  parts_->thread = std::thread([parts = parts_.get()] { parts->server.listen_after_bind(); });
  // One that is not running yet cannot be stopped.
  while (!parts_->server.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

Metrics::~Metrics() {
  parts_->server.stop();
  if (parts_->thread.joinable()) parts_->thread.join();
}

void Metrics::round_done(const federation::RoundRecord& record) {
  parts_->collected.round_done(record);
}

int Metrics::port() const {
  return parts_->port;
}

}  // namespace sotto::serve
