// The server of a prototype method: it gathers clients' prototypes, and the centre that they are taken around.
#pragma once

#include "methods/prototypes/prototype_member.h"

#include <memory>

namespace sotto::methods {

std::unique_ptr<ServerMethod> make_prototype_server(const PublicContext& context, PrototypeMember member);

}  // namespace sotto::methods
