// The processes of one job that work on one thing together: ranks 0 … size-1.
//
// With MPI they are what mpirun or srun started. What speaks MPI is a module beside the program, which is loaded only
// then: without MPI nothing of it is needed, neither to build nor to run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace sotto::transport {

// What ranks have cost rank 0 so far.
struct Traffic {
  double seconds = 0;   // messages were on their way to and from it, packed or unpacked
  int64_t uploads = 0;  // of clients that another rank worked for
  double upload_seconds =
      0;  // from when such an upload was there until it was unpacked, durable in the ledger and added
};

// Messages from one rank to another arrive in the order in which they were sent. One thread of a process at a time.
class Ranks {
 public:
  virtual ~Ranks() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // What rank 0 gives, everybody gets. All ranks call it.
  virtual void broadcast(std::string& bytes) = 0;
  virtual void send(int to, const std::string& bytes) = 0;
  virtual std::string receive(int from) = 0;

  // How long bytes have been on their way to and from here so far; waiting for somebody who has nothing to say yet is not
  // counted.
  virtual double seconds_moving() const = 0;

  // The job is over, and all ranks say so.
  virtual void finish() = 0;
  // Ends all ranks at once. May return, before the end comes.
  virtual void abort(int exit_code) = 0;
};

// Those this process was started with; null if it was started alone. A UserError if there are others and this program
// cannot speak to them. Called once, by the thread that talks to them.
std::shared_ptr<Ranks> open_ranks();

// To be called at the end of a process that failed: the others do not wait for it any longer.
void abandon_ranks(int exit_code);

}  // namespace sotto::transport
