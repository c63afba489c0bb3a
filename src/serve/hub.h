// The server's memory of a federation between machines: who is there, which round is open, what has come in. No network
// and no learning here; both ask this object.
//
//   open      one commit of the round and its cohort
//   collect   uploads grow in files; a kill keeps what was written, after a power cut clients send again
//   frozen    one commit of who reported: the same set is folded however often the process dies after it
//   closed    the new broadcast is on disk; then one commit, and the round's uploads are removed
//
//   SERVER/server.sqlite                    members, rounds, uploads
//   SERVER/spool/ROUND/CLIENT.upload        what came in; CLIENT.part while it grows
//   SERVER/broadcast/ROUND.safetensors      what clients are to fetch
#pragma once

#include "federation/federation_plan.h"
#include "io/database.h"
#include "methods/method.h"

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace sotto::serve {

struct Joined {
  int64_t client = 0;
  // The last upload of theirs that is here; round 0 if there is none.
  int64_t seen_round = 0;
  std::string seen_digest;
};

// What a client asks for and cannot have, in words that are meant for it.
class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What a client is to do next.
struct Work {
  enum class Kind { kNothing, kRound, kOver };
  Kind kind = Kind::kNothing;
  int64_t round = 0;        // to be worked on; kOver: the last one
  std::string digest = {};  // of the broadcast to begin from; kOver: the final one
  int64_t bytes = 0;
  int64_t durable_round = 0;  // uploads of rounds up to this one are not needed any more
};

struct Offer {
  int64_t round = 0;
  std::string key;
  std::string digest;
  int64_t bytes = 0;
  std::string releases;  // rows of the client's ledger, as JSON
};

enum class Verdict {
  kSend,    // from `offset` on
  kStored,  // all of it is here
  kLate,    // the round is over
  kBusy,    // too many uploads at a time; come back
  kRefused  // `reason` says why
};

struct Answer {
  Verdict verdict = Verdict::kSend;
  int64_t offset = 0;
  std::string reason = {};
};

struct MemberStatus {
  int64_t client = 0;
  std::string name;
  int64_t participations = 0;
  int64_t last_round = 0;
  int64_t last_seen = 0;  // seconds since 1970; 0: not since this process began
  bool revoked = false;
};

struct Upload {
  std::filesystem::path file;
  std::string releases;
};

// Says what is wrong with an upload that has come in whole; empty if nothing is.
using Inspector = std::function<std::string(int64_t round, int64_t client, const Upload& upload)>;

// Thread-safe.
class Hub {
 public:
  // The folder is made if it is not there. One that belongs to another plan is a UserError.
  Hub(std::filesystem::path folder, const federation::FederationPlan& plan);
  ~Hub();

  // --- For whoever speaks with clients. Names and fingerprints are those of certificates that were verified.

  // Refused if the name is taken by another certificate, was revoked, or if all places are taken.
  Joined join(const std::string& name, const std::string& fingerprint);
  // The client that this certificate belongs to; nothing if it has not joined or was revoked.
  std::optional<int64_t> member(const std::string& fingerprint);
  void revoke(const std::string& name);

  Work work_for(int64_t client);
  // Calls back, once and from any thread, as soon as work_for may say something else than nothing; at once if it does
  // already. The returned number takes the request back.
  int64_t when_there_is_work(int64_t client, std::function<void()> call);
  void no_longer_wait(int64_t ticket);
  // Calls back all who wait, and from now on everybody at once: the server is going to end.
  void stop_waiting();

  Answer offer(int64_t client, const Offer& offer);
  // The next bytes of what was offered under this key. kStored when they are complete and were found to be in order.
  Answer append(int64_t client, const std::string& key, int64_t offset, std::string_view bytes);
  // The sender stopped in the middle; what has come in stays for the next time.
  void pause(int64_t client);
  // The client sends nothing in this round.
  Answer skip(int64_t client, int64_t round);
  // The client has all it came for.
  void leave(int64_t client);

  // The file that holds what has this digest; nothing if it is not there.
  std::optional<std::filesystem::path> broadcast_file(const std::string& digest);

  // --- For whoever runs the rounds.

  // How many have joined.
  int64_t members();
  // Waits until so many have joined; false if `stop` came first.
  bool wait_for_members(int64_t count, const std::function<bool()>& stop);
  // The cohort of a round: drawn once, durable before anybody hears of it.
  std::vector<int64_t> cohort(int64_t round, const std::function<std::vector<int64_t>()>& draw);
  // Makes the broadcast that opens `broadcast.round + 1` available; after the last round it is the final one.
  void publish(const methods::Broadcast& broadcast, bool is_final);
  // Waits for the cohort's uploads, and freezes those that are there: when all have reported, or at the deadline if the
  // quorum is reached. Those who reported, ascending; nothing if `stop` came first.
  std::optional<std::vector<int64_t>> collect(int64_t round, const std::function<bool()>& stop);
  void set_inspector(Inspector inspector) { inspector_ = std::move(inspector); }
  Upload upload(int64_t round, int64_t client);
  // The round's result is durable.
  void close(int64_t round);
  // Waits until everybody who joined has left; false if `stop` came first.
  bool wait_until_all_left(const std::function<bool()>& stop);

  std::vector<MemberStatus> status();
  int64_t open_round();
  int64_t durable_round();

 private:
  struct Incoming;
  // These expect the mutex to be held.
  Work work_at_hand(int64_t client);
  std::string meta(const std::string& key);
  void set_meta(const std::string& key, const std::string& value);
  void wake();
  void forget_lost_uploads();
  bool reported(int64_t round, int64_t client);
  int64_t reports(int64_t round);
  std::filesystem::path spool(int64_t round) const;
  Answer finish(int64_t client, const Offer& offer, const std::filesystem::path& part,
                std::unique_lock<std::mutex>& lock);

  const std::filesystem::path folder_;
  const federation::FederationPlan& plan_;
  std::mutex mutex_;
  std::condition_variable changed_;
  io::Database database_;
  Inspector inspector_;

  int64_t round_ = 0;  // that is open; 0: none
  std::set<int64_t> cohort_;
  bool frozen_ = false;
  bool over_ = false;
  std::string broadcast_digest_;
  int64_t broadcast_bytes_ = 0;
  std::filesystem::path broadcast_file_;
  std::map<int64_t, std::shared_ptr<Incoming>> incoming_;  // by client
  struct Waiter {
    int64_t client = 0;
    std::function<void()> call;
  };
  std::map<int64_t, Waiter> waiters_;
  int64_t next_ticket_ = 1;
  bool ending_ = false;
  std::map<int64_t, int64_t> last_seen_;
  std::set<int64_t> left_;
};

}  // namespace sotto::serve
