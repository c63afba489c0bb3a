#include "remote/grpc_log.h"

#include "base/json_log.h"

#include <grpc/support/log.h>

namespace sotto::remote {
namespace {

void log(gpr_log_func_args* said) {
  log_plain_as_json(said->message, said->severity == GPR_LOG_SEVERITY_ERROR ? "warning" : "info");
}

}  // namespace

void log_grpc_as_json() {
  gpr_set_log_function(log);
}

}  // namespace sotto::remote
