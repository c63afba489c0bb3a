// What a federation may ask its clients to say of the model: how many of their held-out records it gets right, with
// noise, once, after the last round. Without it, evaluation stays at home.
//
// The model is public, or made of releases that were paid for; so one record moves the count by at most 1
// (docs/proofs/released-evaluation.md). A client counts over as many records as everybody declares, and no number of its
// own leaves it.
#pragma once

#include "methods/method.h"
#include "privacy/channel.h"
#include "privacy/wire.h"

#include <cstdint>
#include <string>

namespace sotto::federation {

class PublicSetup;
class Setup;

struct EvaluationTerms {
  int64_t records = 0;  // held-out records that every client counts over
  double share = 0.1;   // of ε, that training leaves to it
};

inline constexpr const char* kEvaluation = "evaluation";  // what the ledger's row is of

// Why a federation with these settings cannot release its evaluation; "" if it can.
std::string why_no_evaluation(const methods::RunSettings& settings, const methods::MethodEntry& method);

// The least noise with which it stays within `epsilon` together with everything else that the client releases.
privacy::Channel evaluation_channel(const privacy::PrivacyTerms& terms, const methods::ReleasePlan& others,
                                    double epsilon);

// Pays, counts, adds the noise. The method object is lent; `state` is the client's own.
privacy::Release release_evaluation(const Setup& setup, int64_t client, methods::ClientMethod& method,
                                    const methods::Broadcast& broadcast, const privacy::PrivateState& state,
                                    const privacy::ReleaseContext& context);

// What such an upload looks like.
privacy::UploadShape evaluation_shape();
int64_t right_count_in(const NamedTensors& values);

}  // namespace sotto::federation
