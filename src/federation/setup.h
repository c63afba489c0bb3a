// Everything a run needs, checked before anything is written: settings, data, partition, method.
//
// Made once and never changed; copies share what they hold. A Setup that exists is in order: every mistake in the
// settings that only shows against real data or models is a UserError of its constructor.
#pragma once

#include "config/run_spec.h"
#include "data/partition.h"
#include "methods/method.h"
#include "models/task_data.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace sotto::federation {

class Setup {
 public:
  // Loads the data.
  explicit Setup(const config::RunSpec& spec);
  // The same for one of several runs.
  Setup(const config::RunSpec& spec, models::TaskDataCache& cache);
  // With data that is there already.
  Setup(const config::RunSpec& spec, std::shared_ptr<const models::TaskData> data);

  // Other settings on the same data, as far as they do not say which data that is.
  Setup with(const config::RunSpec& spec) const { return {spec, parts_->data}; }

  // Other training records in place of these, row by row: who holds which rows stays as it was dealt.
  Setup with_records(data::Records train) const;

  const config::RunSpec& spec() const { return parts_->spec; }
  const methods::MethodEntry& method() const { return *parts_->method; }
  const models::TaskData& data() const { return *parts_->data; }
  const data::Dataset& dataset() const { return parts_->data->dataset; }
  const data::Partition& partition() const { return *parts_->partition; }

  // What a server may know, and what a client's process knows besides. Valid as long as this object or a copy of it.
  methods::PublicContext public_context() const { return {parts_->spec, parts_->facts}; }
  methods::ClientContext client_context() const { return {public_context(), dataset().train}; }

  // What is declared of a client that holds so many records.
  methods::ClientFacts facts_of(int64_t client, int64_t records) const;
  // In how many rounds of the run it takes part.
  int64_t participations_of(int64_t client) const { return parts_->participations[static_cast<size_t>(client)]; }
  // Why nothing that this run releases can be proven to be private, whatever the method; empty if it can.
  std::string why_unproven() const;
  // What it will release over the run.
  methods::ReleasePlan plan_for(int64_t client) const;

 private:
  struct Parts {
    config::RunSpec spec;
    const methods::MethodEntry* method = nullptr;
    std::shared_ptr<const models::TaskData> data;
    std::shared_ptr<const data::Partition> partition;
    std::vector<int32_t> participations;
    methods::PublicFacts facts;
  };
  explicit Setup(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}

  std::shared_ptr<const Parts> parts_;
};

}  // namespace sotto::federation
