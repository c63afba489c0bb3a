// How strongly a run's uploads speak for each of many canaries.
//
// Where models are uploaded, a canary's score is how far they went along its gradient. Elsewhere (prototypes, prompts)
// it is an estimate of its coin from what all of the client's canaries change in the client's first upload. Changes are
// found by making the upload twice with the same replayed noise: an auditor knows every record but the coins.
#pragma once

#include "base/named_tensors.h"
#include "federation/setup.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace sotto::audit {

// One of a client's own records, whose label is another, or not.
struct PlacedCanary {
  int64_t client = 0;
  int64_t row = 0;    // of the training records
  int64_t label = 0;  // if it is in
  bool in = false;
};

class CanaryScorer {
 public:
  virtual ~CanaryScorer() = default;

  // What the server sent before the uploads that follow.
  virtual void start_from(const NamedTensors& broadcast) = 0;
  virtual void add(int64_t client, const NamedTensors& upload) = 0;

  // By canary; large ones seem to be in.
  const std::vector<double>& scores() const { return scores_; }

 protected:
  explicit CanaryScorer(size_t canaries) : scores_(canaries, 0.0) {}
  std::vector<double> scores_;
};

// For the run of `setup`, in which no canary is in; both must outlive it. Changes are found on `threads` threads.
std::unique_ptr<CanaryScorer> make_canary_scorer(const federation::Setup& setup,
                                                 const std::vector<PlacedCanary>& canaries, int threads);

}  // namespace sotto::audit
