// Clients that learn soft prompts for a frozen vision–language model: DP-FPL and what it is compared with.
//
// Members differ in what a client has besides the global prompt. They share where gradients are bounded, who adds the
// noise, and what it costs:
//
//   no [privacy], in_the_clear    clients send their global prompts as they are.
//   observer = "server"           noise at the client, in every step; the server sees releases alone.
//   observer = "clients", "public"  the server is trusted with the global prompt's clipped gradients and adds noise to
//                                 their sum; the local prompt gets its noise at the client. A prompt's user sees both.
//   variant = "paper"             as printed: batch gradients clipped, u, v and p_G each charged as if alone.
#pragma once

#include "methods/method.h"
#include "methods/prompts/prompt_options.h"

#include <string>

namespace sotto::methods {

// A catalogue entry of the family.
MethodEntry prompt_learning(std::string name, std::string what, std::string citation, PromptReader read);

}  // namespace sotto::methods
