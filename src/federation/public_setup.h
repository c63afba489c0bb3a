// What everybody in a federation knows, its server included: settings, method, declared facts. No records.
//
// Made once and never changed; copies share what they hold. One that exists is in order: settings that the method or the
// model cannot work with are UserErrors of its constructor.
#pragma once

#include "config/run_spec.h"
#include "federation/released_evaluation.h"
#include "methods/method.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sotto::federation {

class PublicSetup {
 public:
  // `participations`: in how many rounds each client takes part, at most. `why_unproven`: why nothing that the clients
  // release can be proven to be private, whatever the method; empty if it can. `evaluation`: what clients are asked to say
  // of the last model.
  PublicSetup(const config::RunSpec& spec, methods::PublicFacts facts, std::vector<int32_t> participations,
              std::string why_unproven = "", std::optional<EvaluationTerms> evaluation = std::nullopt);

  const config::RunSpec& spec() const { return parts_->spec; }
  const methods::MethodEntry& method() const { return *parts_->method; }
  const methods::PublicFacts& facts() const { return parts_->facts; }
  const std::string& why_unproven() const { return parts_->why_unproven; }
  const std::optional<EvaluationTerms>& evaluation() const { return parts_->evaluation; }
  // Valid as long as this object or a copy of it.
  methods::PublicContext context() const { return {parts_->spec, parts_->facts}; }

  int64_t participations_of(int64_t client) const { return parts_->participations[static_cast<size_t>(client)]; }
  // What is declared of a client that holds so many records; its ε is what the method may use.
  methods::ClientFacts facts_of(int64_t client, int64_t records) const;
  // What such a client will release over the whole federation; its evaluation, if it is asked for, comes last.
  methods::ReleasePlan plan_for(const methods::ClientFacts& client) const;

 private:
  struct Parts {
    config::RunSpec spec;
    const methods::MethodEntry* method = nullptr;
    methods::PublicFacts facts;
    std::vector<int32_t> participations;
    std::string why_unproven;
    std::optional<EvaluationTerms> evaluation;
  };

  std::shared_ptr<const Parts> parts_;
};

// The number of records that stands for `held`: what [privacy] declares in its place, or itself.
int64_t declared_records(const config::RunSpec& spec, int64_t held);

}  // namespace sotto::federation
