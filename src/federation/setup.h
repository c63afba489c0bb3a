// Everything a run needs, checked before anything is written: settings, data, partition, method.
//
// Made once and never changed; copies share what they hold. A Setup that exists is in order: every mistake in the
// settings that only shows against real data or models is a UserError of its constructor.
#pragma once

#include "data/partition.h"
#include "federation/public_setup.h"
#include "models/task_data.h"

#include <cstdint>
#include <memory>
#include <string>

namespace sotto::federation {

class Setup {
 public:
  // Loads the data.
  explicit Setup(const config::RunSpec& spec);
  // The same for one of several runs.
  Setup(const config::RunSpec& spec, models::TaskDataCache& cache);
  // With data that is there already.
  Setup(const config::RunSpec& spec, std::shared_ptr<const models::TaskData> data);

  // At the home of one client of a federation: `data` is all it has, and test_fraction of it is held out if it has no
  // test split. Data that is not what the federation declares is a UserError.
  static Setup at_home(const PublicSetup& published, int64_t client, std::shared_ptr<const models::TaskData> data);

  // At the server of a federation, which has no records: enough to use a model.
  static Setup without_records(const PublicSetup& published);

  // Other settings on the same data, as far as they do not say which data that is.
  Setup with(const config::RunSpec& spec) const { return {spec, parts_->as_loaded}; }

  // Other training records in place of these, row by row: who holds which rows stays as it was dealt.
  Setup with_records(data::Records train) const;

  const PublicSetup& published() const { return parts_->published; }
  const config::RunSpec& spec() const { return published().spec(); }
  const methods::MethodEntry& method() const { return published().method(); }
  const models::TaskData& data() const { return *parts_->data; }
  const data::Dataset& dataset() const { return parts_->data->dataset; }
  const data::Partition& partition() const { return *parts_->partition; }

  // What a server may know, and what a client's process knows besides. Valid as long as this object or a copy of it.
  methods::PublicContext public_context() const { return published().context(); }
  methods::ClientContext client_context() const { return {public_context(), dataset().train}; }

  // As PublicSetup says.
  int64_t participations_of(int64_t client) const { return published().participations_of(client); }
  const std::string& why_unproven() const { return published().why_unproven(); }
  // What is declared of a client, and what it will release over the run.
  methods::ClientFacts facts_of(int64_t client) const;
  methods::ReleasePlan plan_for(int64_t client) const;

 private:
  struct Parts {
    PublicSetup published;
    std::shared_ptr<const models::TaskData> data;
    std::shared_ptr<const data::Partition> partition;
    std::shared_ptr<const models::TaskData> as_loaded = data;  // before data.centre = "own" moved it
  };
  explicit Setup(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}

  std::shared_ptr<const Parts> parts_;
};

}  // namespace sotto::federation
