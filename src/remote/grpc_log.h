// What gRPC itself has to say, in the same form as everything else (base/json_log.h).
#pragma once

namespace sotto::remote {

// To be called once, after log_json.
void log_grpc_as_json();

// For people: connections that did not come about, of which a server's operator hears nowhere else. Nothing of what else it
// says, unless GRPC_VERBOSITY is set.
void log_failed_connections();
// Nothing at all: whoever calls somebody is told what came of it.
void silence_grpc();

}  // namespace sotto::remote
