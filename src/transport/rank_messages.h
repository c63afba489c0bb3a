// What ranks tell each other, as bytes.
//
//   message := length(u64) header(JSON) payload
//
// Payloads are tensors (safetensors) or an upload as privacy/wire.h writes it, and uploads come in through that door
// alone. Numbers keep every bit.
#pragma once

#include "federation/transport.h"
#include "privacy/event.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace sotto::transport {

struct Message {
  nlohmann::json header;
  std::string payload;
};

std::string to_bytes(const Message& message);
Message message_from(const std::string& bytes);

std::string tensors_to_bytes(const NamedTensors& tensors);
NamedTensors tensors_from(std::string bytes);

nlohmann::json rows_to_json(const std::vector<privacy::Event>& rows);
std::vector<privacy::Event> rows_from(const nlohmann::json& value);

// One client's answer and the rows of the ledger that it rests on.
std::string to_bytes(const federation::Reply& reply, const std::vector<privacy::Event>& rows);
struct ReplyAndRows {
  federation::Reply reply;
  std::vector<privacy::Event> rows;
};
// An upload that is not of this shape becomes the client's failure.
ReplyAndRows reply_from(const std::string& bytes, const privacy::UploadShape& shape);

std::string to_bytes(const federation::ClientScore& score);
federation::ClientScore score_from(const std::string& bytes);

std::string to_bytes(const federation::Predictions& predictions);
federation::Predictions predictions_from(const std::string& bytes);

}  // namespace sotto::transport
