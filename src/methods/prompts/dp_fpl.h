// DP-FPL: private federated prompts (Tran et al., ICLR 2025), and the prompt methods it is compared with.
#pragma once

#include "methods/method.h"

namespace sotto::methods {

// A global prompt for everyone and a local one that stays at home. Every step factors the local prompt into u·v and a
// residual; noise reaches it through the gradients of u and v alone.
MethodEntry dp_fpl();

// One shared prompt (Guo et al., 2023).
MethodEntry promptfl();

// A global and a local prompt, joined by unbalanced optimal transport to an image's patches (Li et al., CVPR 2024).
MethodEntry fedotp();

// The global prompt plus a trained u·v, and a contrastive term (Cui et al., ICML 2024).
MethodEntry fedpgp();

}  // namespace sotto::methods
