// LaDP-FL: layer-wise noise (Li et al., LaDP-FL).
//
// Sound, every step of DP-SGD has a bound and a noise for each layer; layers are chosen and noise is dealt from the
// global model and from the client's own earlier releases. As printed, the trained model gets noise layer by layer.
#pragma once

#include "methods/method.h"

namespace sotto::methods {

MethodEntry ladp_fl();

}  // namespace sotto::methods
