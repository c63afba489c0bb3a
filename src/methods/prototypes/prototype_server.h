// The server of a prototype method: it gathers clients' prototypes, and the centre that they are taken around.
#pragma once

#include "methods/prototypes/prototype_member.h"

#include <memory>

namespace sotto::methods {

std::unique_ptr<ServerMethod> make_prototype_server(const PublicContext& context, PrototypeMember member);

// What it may send: prototypes of all that the framework makes or of nothing, a centre, anchors.
BroadcastShape prototype_broadcast_shape(const PublicContext& context, const PrototypeMember& member,
                                         const Broadcast& broadcast);

}  // namespace sotto::methods
