// What a run is: every setting, resolved and validated, immutable from here on.
//
// A RunSpec is made once from a TOML file (see load.h). Its hash stamps runs, checkpoints and uploads, so that mixed
// settings are caught. Each part lives where it is used: data/options.h, models/options.h, privacy/terms.h,
// methods/run_settings.h and the method's own file.
#pragma once

#include "methods/run_settings.h"

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace sotto::config {

enum class KeepStates {
  kLast,  // clients' states after the last round: personal models can be used
  kNone   // none once the run is finished
};
constexpr auto choices(KeepStates) {
  return std::to_array<settings::Choice<KeepStates>>({{KeepStates::kLast, "last"}, {KeepStates::kNone, "none"}});
}

// [record]
struct RecordOptions {
  bool uploads = false;          // keep every upload in the run directory, for attacks
  int64_t checkpoint_every = 1;  // rounds between checkpoints
  KeepStates keep_states = KeepStates::kLast;

  bool operator==(const RecordOptions&) const = default;
};

struct RunSpec : methods::RunSettings {
  std::string name;                       // a label for people
  std::vector<std::string> client_names;  // [[clients]]: labels for people, one each; empty = clients have none
  RecordOptions record;                   // what is kept of the run

  // "Cleveland", or "client 0" where clients have no names.
  std::string client_name(int64_t id) const;

  // SHA-256 of the settings that determine the result; not of labels, of what is kept, or of where states live
  // meanwhile.
  std::string hash() const;
  // The same with another number of rounds.
  RunSpec with_rounds(int64_t count) const;
  nlohmann::json to_json() const;
  // TOML that loads to the same.
  std::string to_toml() const;
};

}  // namespace sotto::config
