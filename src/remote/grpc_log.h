// What gRPC itself has to say, in the same form as everything else (base/json_log.h).
#pragma once

namespace sotto::remote {

// To be called once, after log_json.
void log_grpc_as_json();

}  // namespace sotto::remote
