#include "transport/rank_messages.h"

#include "base/error.h"
#include "io/safetensors.h"
#include "privacy/event_json.h"

#include <bit>
#include <cstring>
#include <utility>

namespace sotto::transport {
namespace {

using federation::ClientScore;
using federation::Predictions;
using federation::Reply;
using nlohmann::json;

// JSON has no NaN.
json bits(double value) {
  return std::bit_cast<uint64_t>(value);
}
double number(const json& value) {
  return std::bit_cast<double>(value.get<uint64_t>());
}

constexpr double ClientScore::*kScores[] = {&ClientScore::accuracy,
                                            &ClientScore::balanced_accuracy,
                                            &ClientScore::auroc,
                                            &ClientScore::local_accuracy,
                                            &ClientScore::neighbour_accuracy,
                                            &ClientScore::validation_accuracy,
                                            &ClientScore::global_test_accuracy};

json report_json(const methods::LocalReport& report) {
  json measures = json::object();
  for (const auto& [name, value] : report.measures) measures[name] = bits(value);
  return {{"loss", bits(report.loss)},
          {"samples", report.samples},
          {"diverged", report.diverged},
          {"noise_norm", report.noise_norm ? bits(*report.noise_norm) : json()},
          {"measures", measures}};
}

methods::LocalReport report_from(const json& value) {
  methods::LocalReport report;
  report.loss = number(value.at("loss"));
  report.samples = value.at("samples");
  report.diverged = value.at("diverged");
  report.noise_norm = value.at("noise_norm").is_null() ? std::nullopt : std::optional(number(value.at("noise_norm")));
  for (const auto& [name, measure] : value.at("measures").items()) report.measures[name] = number(measure);
  return report;
}

}  // namespace

std::string to_bytes(const Message& message) {
  const std::string header = message.header.dump();
  const uint64_t length = header.size();
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  bytes.reserve(bytes.size() + header.size() + message.payload.size());
  return bytes.append(header).append(message.payload);
}

Message message_from(const std::string& bytes) {
  uint64_t length = 0;
  SOTTO_INVARIANT(bytes.size() >= sizeof(length));
  std::memcpy(&length, bytes.data(), sizeof(length));
  SOTTO_INVARIANT(length <= bytes.size() - sizeof(length));
  return {json::parse(bytes.begin() + sizeof(length), bytes.begin() + static_cast<int64_t>(sizeof(length) + length)),
          bytes.substr(sizeof(length) + length)};
}

std::string tensors_to_bytes(const NamedTensors& tensors) {
  return io::safetensors_bytes({.tensors = tensors, .metadata = {}});
}

NamedTensors tensors_from(std::string bytes) {
  return io::parse_safetensors(std::move(bytes), "a message between ranks").tensors;
}

json rows_to_json(const std::vector<privacy::Event>& rows) {
  json value = json::array();
  for (const privacy::Event& row : rows) value.push_back(privacy::to_json(row));
  return value;
}

std::vector<privacy::Event> rows_from(const json& value) {
  std::vector<privacy::Event> rows;
  for (const json& row : value) rows.push_back(privacy::event_from(row));
  return rows;
}

std::string to_bytes(const Reply& reply, const std::vector<privacy::Event>& rows) {
  return to_bytes(Message{{{"client", reply.client},
                           {"failure", reply.failure},
                           {"abstained", reply.abstained},
                           {"report", report_json(reply.report)},
                           {"rows", rows_to_json(rows)},
                           {"uploads", reply.upload.has_value()}},
                          reply.upload ? privacy::encode(*reply.upload) : std::string()});
}

ReplyAndRows reply_from(const std::string& bytes, const privacy::UploadShape& shape) {
  Message message = message_from(bytes);
  ReplyAndRows answer;
  Reply& reply = answer.reply;
  reply.client = message.header.at("client");
  reply.failure = message.header.at("failure");
  reply.abstained = message.header.at("abstained");
  reply.report = report_from(message.header.at("report"));
  answer.rows = rows_from(message.header.at("rows"));
  if (!message.header.at("uploads")) return answer;
  try {
    reply.upload = privacy::decode(std::move(message.payload), shape);
  } catch (const privacy::UploadRefused& refusal) {
    reply.failure = refusal.what();
  }
  return answer;
}

std::string to_bytes(const ClientScore& score) {
  json values = json::array();
  for (const auto member : kScores) values.push_back(bits(score.*member));
  return to_bytes(Message{
      {{"client", score.client}, {"domain", score.domain}, {"records", score.records}, {"scores", values}}, ""});
}

ClientScore score_from(const std::string& bytes) {
  const json header = message_from(bytes).header;
  ClientScore score;
  score.client = header.at("client");
  score.domain = header.at("domain");
  score.records = header.at("records");
  size_t next = 0;
  for (const auto member : kScores) score.*member = number(header.at("scores").at(next++));
  return score;
}

std::string to_bytes(const Predictions& predictions) {
  NamedTensors tensors = {{"predicted", predictions.predicted}, {"truth", predictions.truth}};
  if (predictions.score.defined()) tensors.push_back({"score", predictions.score});
  return tensors_to_bytes(tensors);
}

Predictions predictions_from(const std::string& bytes) {
  const NamedTensors tensors = tensors_from(bytes);
  return {.predicted = find_tensor(tensors, "predicted"),
          .score = find_tensor(tensors, "score"),
          .truth = find_tensor(tensors, "truth")};
}

}  // namespace sotto::transport
