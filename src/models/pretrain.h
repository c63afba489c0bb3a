// Central training of a backbone on a public dataset, so that "frozen pretrained backbone" is real without any
// download.
#pragma once

#include "data/options.h"
#include "models/options.h"
#include "models/weights/pretrained_card.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace sotto::models {

struct PretrainOptions {
  std::string name;  // what the weights will be called; "" = MODEL-DATASET
  ModelOptions model;
  data::DataOptions data;
  int64_t epochs = 10;
  int64_t batch = 128;
  std::string optimizer = "adamw";  // adamw, or sgd with momentum 0.9
  double lr = 1e-3;                 // reached after the first twentieth of the steps, then a cosine down to zero
  double weight_decay = 0.05;
  bool augment = true;  // images: random shifts and, for colour images, mirroring
  uint64_t seed = 1;
};

struct EpochReport {
  int64_t epoch;  // from 1
  double loss;    // mean over the epoch's records
  double accuracy;
  double seconds;
};

struct PretrainResult {
  std::string name;
  std::filesystem::path file;
  PretrainedCard card;
  bool interrupted = false;
};

// Trains and saves after every epoch, so that Ctrl-C keeps the last whole one. Accuracy is on the dataset's test
// records, or on a tenth of the training records held out. Bad options and a loss that is not finite are UserErrors.
PretrainResult pretrain(const PretrainOptions& options, const std::function<void(const EpochReport&)>& on_epoch);

}  // namespace sotto::models
