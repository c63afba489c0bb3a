// A client of a prototype method: its model, its own centre, what it learns and what it sends.
#pragma once

#include "methods/prototypes/prototype_member.h"

#include <memory>

namespace sotto::methods {

std::unique_ptr<ClientMethod> make_prototype_client(const ClientContext& context, PrototypeMember member);

}  // namespace sotto::methods
