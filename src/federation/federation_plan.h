// The plan of a federation between machines: everything that is public about it, as one text that server and clients hash.
//
// A server makes it from its config: the run's settings without local paths, and the tables
//
//   [declared]                   what is said of the clients' data before anybody has seen it
//   records = 230                of an average client
//   least_records = 120          of the smallest; a client with fewer does not join
//   kind = "images"              images, features or tokens; with data.schema all of this follows from it
//   shape = [1, 28, 28]          of one record
//   classes = ["well", "ill"]    in the order of the labels
//   test_records = 40            with serve.evaluation = "released": held-out records that every client counts over
//
//   [serve]
//   quorum = 3                   uploads below which a round is not closed; all of them by default
//   deadline = 600               seconds that a round waits for those who are missing
//   most_participations = 50     of any client; all rounds by default. Noise is calibrated to it, and clients hold to it.
//
//   evaluation = "local"         or "released": after the last round every client says with noise how many held-out records
//                                the model gets right (released_evaluation.h)
//   evaluation_share = 0.1       of ε, that training leaves to it
//
// A client gets the text from a server that it does not trust: what it does not understand, it refuses.
#pragma once

#include "federation/public_setup.h"

#include <cstdint>
#include <optional>
#include <string>

namespace sotto::federation {

struct ServeTerms {
  int64_t quorum = 0;
  double deadline_seconds = 600;
};

class FederationPlan {
 public:
  // At the server; UserErrors point into the config.
  FederationPlan(const config::RunSpec& spec, settings::Section declared, std::optional<settings::Section> serve);
  // At a client; a UserError if the text is no plan or names files of the client's machine.
  explicit FederationPlan(std::string text);

  const PublicSetup& setup() const { return *setup_; }
  const ServeTerms& terms() const { return terms_; }
  const std::string& text() const { return text_; }
  // SHA-256 of the text.
  const std::string& hash() const { return hash_; }
  // Names the one upload of this client and round, on every retry.
  std::string upload_key(int64_t client, int64_t round) const;
  // As much of it as names it among people and files.
  std::string short_hash() const { return hash_.substr(0, 16); }

 private:
  void finish(const config::RunSpec& spec, methods::PublicFacts facts, std::optional<EvaluationTerms> evaluation);

  std::string text_;
  std::string hash_;
  ServeTerms terms_;
  std::optional<PublicSetup> setup_;
};

}  // namespace sotto::federation
