#include "remote/grpc_log.h"

#include "base/json_log.h"
#include "base/log.h"

#include <grpc/support/log.h>

#include <cstdlib>
#include <string_view>

namespace sotto::remote {
namespace {

void log(gpr_log_func_args* said) {
  log_plain_as_json(said->message, said->severity == GPR_LOG_SEVERITY_ERROR ? "warning" : "info");
}

void log_failed(gpr_log_func_args* said) {
  const std::string_view message = said->message;
  if (message.starts_with("Handshake failed")) warn("somebody could not connect: {}", message);
}

void ignore(gpr_log_func_args*) {}

void listen_with(gpr_log_func listener) {
  if (std::getenv("GRPC_VERBOSITY") == nullptr) gpr_set_log_function(listener);
}

}  // namespace

void log_failed_connections() {
  listen_with(log_failed);
}

void silence_grpc() {
  listen_with(ignore);
}

void log_grpc_as_json() {
  gpr_set_log_function(log);
}

}  // namespace sotto::remote
