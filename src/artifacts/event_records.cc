#include "artifacts/event_records.h"

#include "artifacts/events.pb.h"

#include <boost/crc.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

namespace sotto::artifacts {
namespace {

using nlohmann::json;

constexpr const char* kFileVersion = "brain.Event:2";
constexpr int kBuckets = 20;

template <typename Integer>
std::string little_endian(Integer value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(value); ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
  return bytes;
}

// Checksums of bytes that hold checksums themselves are weak; so they are rotated and shifted before they are stored.
uint32_t masked_crc32c(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
}

std::string framed(const events::Event& event) {
  const std::string payload = event.SerializeAsString();
  const std::string length = little_endian<uint64_t>(payload.size());
  return length + little_endian(masked_crc32c(length)) + payload + little_endian(masked_crc32c(payload));
}

class Scalars {
 public:
  explicit Scalars(events::Summary& summary) : summary_(summary) {}

  void add(const std::string& tag, double value) {
    if (!std::isfinite(value)) return;
    events::Summary::Value& added = *summary_.add_value();
    added.set_tag(tag);
    added.set_scalar(static_cast<float>(value));
  }
  void add(const std::string& tag, const json& value) {
    if (value.is_number()) add(tag, value.get<double>());
  }

 private:
  events::Summary& summary_;
};

// Shares lie between 0 and 1.
void add_histogram(events::Summary& summary, const std::string& tag, const json& per_client) {
  std::vector<double> values;
  for (const json& value : per_client) {
    if (value.is_number()) values.push_back(value.get<double>());
  }
  if (values.empty()) return;
  events::Summary::Value& added = *summary.add_value();
  added.set_tag(tag);
  events::Histogram& histogram = *added.mutable_histogram();
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  histogram.set_min(*least);
  histogram.set_max(*most);
  histogram.set_num(static_cast<double>(values.size()));
  std::vector<double> counts(kBuckets);
  for (const double value : values) {
    histogram.set_sum(histogram.sum() + value);
    histogram.set_sum_squares(histogram.sum_squares() + value * value);
    counts[static_cast<size_t>(std::clamp(std::ceil(value * kBuckets) - 1, 0.0, kBuckets - 1.0))] += 1;
  }
  for (int i = 0; i < kBuckets; ++i) {
    histogram.add_bucket_limit(static_cast<double>(i + 1) / kBuckets);
    histogram.add_bucket(counts[static_cast<size_t>(i)]);
  }
}

void add_evaluation(events::Summary& summary, const json& evaluation, bool per_client) {
  Scalars scalars(summary);
  constexpr std::string_view kGlobal = "_global";
  for (const auto& [name, score] : evaluation.items()) {
    if (name.ends_with(kGlobal)) {
      scalars.add(name.substr(0, name.size() - kGlobal.size()) + "/global", score);
    } else if (score.contains("per_client")) {
      for (const char* part : {"mean", "std", "worst"}) scalars.add(name + "/" + part, score[part]);
      if (!per_client) continue;
      for (const auto& [client, value] : score["per_client"].items()) scalars.add(name + "_of_client/" + client, value);
    } else {
      for (const auto& [part, value] : score.items()) scalars.add(name + "/" + part, value);
    }
  }
  add_histogram(summary, "accuracy/clients", evaluation["accuracy"]["per_client"]);
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

std::string first_event_record(double wall_time) {
  events::Event event;
  event.set_wall_time(wall_time);
  event.set_file_version(kFileVersion);
  return framed(event);
}

std::string round_event_record(const RoundEvent& round) {
  events::Event event;
  event.set_wall_time(round.wall_time);
  event.set_step(round.line["round"].get<int64_t>());
  events::Summary& summary = *event.mutable_summary();
  Scalars scalars(summary);
  scalars.add("loss/train", round.line["train_loss"]);
  scalars.add("round/seconds", round.line["seconds"]);
  scalars.add("round/evaluation_seconds", round.line["evaluation_seconds"]);
  scalars.add("round/uploads", round.line["uploads"]);
  scalars.add("round/abstained", static_cast<double>(round.line["abstained"].size()));
  scalars.add("round/diverged", static_cast<double>(round.line["diverged"].size()));
  scalars.add("epsilon/claimed", round.spent.claimed);
  scalars.add("epsilon/proven", round.spent.proven);
  if (round.line.contains("evaluation")) add_evaluation(summary, round.line["evaluation"], round.per_client);
  return framed(event);
}

}  // namespace sotto::artifacts
