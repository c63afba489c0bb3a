// The authority behind an address, by its fingerprint alone.
#pragma once

#include <string>

namespace sotto::remote {

// Its certificate (PEM), which a server's enrolment port shows beside its own. One that is not there is a UserError, a
// server that is not there Unreachable (remote/client.h). The certificate is all that is taken from this connection:
// whoever answers proves nothing by it, and is to be asked again by somebody who trusts this authority alone.
std::string find_authority(const std::string& address, const std::string& fingerprint);

}  // namespace sotto::remote
