// The server side of prompt learning.
#pragma once

#include "methods/method.h"
#include "methods/prompts/prompt_terms.h"

#include <memory>

namespace sotto::methods {

// Averages the clients' global prompts; or, if it is trusted, adds up their bounded gradients, adds noise, and takes
// one step.
std::unique_ptr<ServerMethod> make_prompt_server(const PublicContext& context, const PromptTerms& terms);

// What either takes.
privacy::UploadShape prompt_upload_shape(const PublicContext& context, const PromptTerms& terms,
                                         const Broadcast& broadcast);

}  // namespace sotto::methods
