// Work that several processes share through a folder that all of them see: ranks of mpirun, tasks of an array, or the
// same command in two terminals.
//
//   FOLDER/ITEM/lock      whose work it is (run_lock.h)
//   FOLDER/ITEM/result    what came of it
//
// What is there is not made again, so that work that was stopped goes on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace sotto::artifacts {

// This process has done its part; somebody else goes on, or the same command does once the others are done. No failure:
// the program shows what() and exits with 0.
class OthersAtWork : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct SharedWork {
  std::filesystem::path folder;
  int64_t items = 0;
  int threads = 1;
  std::function<std::string(int64_t item)> make;      // the result of one, as bytes
  std::function<void(int64_t item)> done = {};        // it is there, whoever made it; one call at a time. May be empty
  std::function<bool()> over = [] { return false; };  // somebody needs none of them any more
};

// The results of all items, in order: made here, or waited for where others are at them. Nothing if they are no longer
// needed.
std::vector<std::string> share(const SharedWork& work);

}  // namespace sotto::artifacts
