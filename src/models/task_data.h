// The data of a run as its model sees it.
#pragma once

#include "data/dataset.h"
#include "data/options.h"
#include "models/model.h"
#include "models/options.h"

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace sotto::models {

struct TaskData {
  data::Dataset dataset;
  Task task;
  std::vector<int64_t> feature_blocks = {};  // widths, if the records are features of several backbones side by side
};

// Loads the dataset; replaces its records by cached features if data.features asks for them (computing them first if
// they are not there yet; "a+b" puts those of two backbones side by side); tokenises text for models that read tokens.
// Text for a model that cannot read it is a UserError.
TaskData load_task_data(const data::DataOptions& data, const ModelOptions& model, uint64_t seed);

// Loads what it has not just loaded: runs that differ in their methods, partitions or seeds share one copy of their
// data. Changes of the files in the meantime go unseen. Thread-safe.
class TaskDataCache {
 public:
  TaskData load(const data::DataOptions& data, const ModelOptions& model, uint64_t seed);

 private:
  struct Key {
    data::DataOptions data;  // as far as it decides what is loaded
    std::string tokenizer;
    uint64_t seed = 0;  // 0 where it does not matter
    bool operator==(const Key&) const = default;
  };
  std::mutex mutex_;
  std::optional<Key> key_;
  TaskData last_;
};

// Replaces the texts of a kText dataset by token ids; `weights` says whose tokenizer to use.
void tokenise(data::Dataset& dataset, const std::string& weights);

}  // namespace sotto::models
