// The server's memory of a federation between machines: who is there, which round is open, what has come in. No network
// and no learning here; both ask this object.
//
//   open      one commit of the round and its cohort
//   collect   one commit of every digest that is offered, before the first byte: no other is taken for this client and round;
//             uploads grow in files; a kill keeps what was written, after a power cut clients send again
//   frozen    one commit of who reported: the same set is folded however often the process dies after it
//   closed    the new broadcast is on disk; then one commit, and the round's uploads are removed
//
//   SERVER/server.sqlite                    members, rounds, offers, uploads, who was heard of when
//   SERVER/spool/ROUND/CLIENT.upload        what came in; CLIENT.part while it grows
//   SERVER/broadcast/ROUND.safetensors      what clients are to fetch
#pragma once

#include "federation/federation_plan.h"
#include "federation/messages.h"
#include "io/database.h"
#include "methods/method.h"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace sotto::serve {

using federation::Answer;
using federation::Joined;
using federation::Offer;
using federation::Verdict;
using federation::Work;

// What a client asks for and cannot have, in words that are meant for it.
class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Whoever was heard of within so many seconds is here: clients that wait ask at least twice a minute.
inline constexpr int64_t kHereWithin = 120;

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

  // Refused if the certificate was revoked, if the name is taken by another one that was not, or if all places are taken.
  Joined join(const std::string& name, const std::string& fingerprint);
  // The client that this certificate belongs to; nothing if it has not joined or was revoked.
  std::optional<int64_t> member(const std::string& fingerprint);
  // This certificate is good no longer. Another one of the same name takes its place when it joins.
  void revoke(const std::string& fingerprint);

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
  // quorum (the plan's, or this one) is reached. Those who reported, ascending; nothing if `stop` came first.
  std::optional<std::vector<int64_t>> collect(int64_t round, const std::function<bool()>& stop,
                                              std::optional<int64_t> quorum = std::nullopt);
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
  void hear_of(int64_t client);
  void write_down_who_is_here();
  bool reported(int64_t round, int64_t client);
  int64_t reports(int64_t round);
  // What the client has offered for this round, whether it came in or not; "" if nothing.
  std::string offered_digest(int64_t round, int64_t client);
  bool is_stored(const Offer& offer, int64_t client);
  void remember(const Offer& offer, int64_t client);
  std::filesystem::path spool(int64_t round) const;
  // All bytes of an upload are in this file; looks at them without holding the lock.
  Answer finish(int64_t client, const Offer& offer, const std::filesystem::path& part,
                std::unique_lock<std::mutex>& lock);
  // For all of an upload whose beginning an earlier process left damaged.
  Answer ask_again(int64_t client, const Incoming& damaged);
  Answer refuse(int64_t client, const std::filesystem::path& part, std::string reason);

  const std::filesystem::path folder_;
  const federation::FederationPlan& plan_;
  std::mutex mutex_;
  std::condition_variable changed_;
  io::Database database_;
  Inspector inspector_;

  int64_t round_ = 0;  // that is open; 0: none
  int64_t durable_round_ = 0;
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
  std::set<int64_t> heard_;  // since it was written down
  std::chrono::steady_clock::time_point written_down_;
  std::set<int64_t> left_;
};

}  // namespace sotto::serve
