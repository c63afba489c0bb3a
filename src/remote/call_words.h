// Why a call did not get through, in words for whoever typed the address.
#pragma once

#include <string>

namespace sotto::remote {

// Of what gRPC says of a connection; what it does not know stays as it is.
std::string unreachable_in_words(const std::string& said);

}  // namespace sotto::remote
