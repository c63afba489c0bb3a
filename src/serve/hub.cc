#include "serve/hub.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fault_points.h"
#include "base/files.h"
#include "base/log.h"
#include "base/sha256.h"
#include "io/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace sotto::serve {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr size_t kMostUploadsAtATime = 16;
constexpr int64_t kLargestUpload = int64_t{8} << 30;
constexpr size_t kMostReleases = 1 << 20;  // bytes of their description
constexpr bool kDurably = true;
constexpr auto kLook = std::chrono::milliseconds(100);
constexpr auto kWriteDownEvery = std::chrono::seconds(1);
constexpr size_t kReadBytes = 1 << 20;

constexpr const char* kSchema = R"(
  CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS members (
    client INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, fingerprint TEXT NOT NULL UNIQUE, revoked INTEGER NOT NULL,
    seen_round INTEGER NOT NULL, seen_digest TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS rounds (round INTEGER PRIMARY KEY, cohort TEXT NOT NULL, reporters TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS uploads (
    round INTEGER NOT NULL, client INTEGER NOT NULL, key TEXT NOT NULL, digest TEXT NOT NULL, releases TEXT NOT NULL,
    skipped INTEGER NOT NULL, PRIMARY KEY (round, client));
  CREATE TABLE IF NOT EXISTS offers (
    round INTEGER NOT NULL, client INTEGER NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (round, client));
  CREATE TABLE IF NOT EXISTS presence (client INTEGER PRIMARY KEY, heard INTEGER NOT NULL);
  DELETE FROM presence;
)";

int64_t number_or_zero(const std::string& text) {
  return text.empty() ? 0 : std::stoll(text);
}

fs::path prepared(const fs::path& folder) {
  make_folder(folder / "spool");
  make_folder(folder / "broadcast");
  return folder;
}

bool is_digest(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

void sync_file(const fs::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = descriptor >= 0 && ::fsync(descriptor) == 0;
  const int error = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (!synced) fail_user("cannot make {} durable: {}", file.string(), std::strerror(error));
}

Answer refused(std::string reason) {
  return {.verdict = Verdict::kRefused, .offset = 0, .reason = std::move(reason)};
}

}  // namespace

// An upload on its way: an open file, and the digest of what is in it so far.
struct Hub::Incoming {
  Incoming(const fs::path& path, Offer what) : file(path), offer(std::move(what)) {
    descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor < 0) fail_user("cannot write {}: {}", path.string(), std::strerror(errno));
    received = static_cast<int64_t>(::lseek(descriptor, 0, SEEK_END));
    is_inherited = received > 0;
  }
  ~Incoming() { ::close(descriptor); }
  Incoming(const Incoming&) = delete;
  Incoming& operator=(const Incoming&) = delete;

  // Behind what is there; false, with errno, if that cannot be.
  bool write(int64_t offset, std::string_view bytes) {
    if (!digest_up_to(offset)) return false;
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t written = ::pwrite(descriptor, bytes.data() + done, bytes.size() - done,
                                       static_cast<off_t>(offset + static_cast<int64_t>(done)));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return false;
      done += static_cast<size_t>(written);
    }
    digest.update(bytes);
    digested += static_cast<int64_t>(bytes.size());
    return true;
  }

  // Lets the disk begin, so that there is less to wait for when the round is frozen.
  void begin_to_sync() const { ::sync_file_range(descriptor, 0, 0, SYNC_FILE_RANGE_WRITE); }

  fs::path file;
  Offer offer;
  int descriptor = -1;
  int64_t received = 0;
  bool is_inherited = false;   // an earlier process wrote its beginning, which a power cut may have damaged
  bool is_written_to = false;  // by one call at a time
  Sha256 digest;

 private:
  // What an earlier process has written.
  bool digest_up_to(int64_t offset) {
    std::string buffer;
    while (digested < offset) {
      buffer.resize(static_cast<size_t>(std::min<int64_t>(kReadBytes, offset - digested)));
      const ssize_t count = ::pread(descriptor, buffer.data(), buffer.size(), static_cast<off_t>(digested));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      digest.update(std::string_view(buffer).substr(0, static_cast<size_t>(count)));
      digested += count;
    }
    return true;
  }

  int64_t digested = 0;
};

Hub::Hub(fs::path folder, const federation::FederationPlan& plan)
    : folder_(prepared(folder)), plan_(plan), database_(folder_ / "server.sqlite", io::Database::Mode::kWrite) {
  database_.execute(kSchema);
  const std::string known = meta("plan");
  if (!known.empty() && known != plan_.hash()) {
    fail_user("{} belongs to another plan; put its config back, or serve from another folder", folder_.string());
  }
  if (known.empty()) set_meta("plan", plan_.hash());
  durable_round_ = number_or_zero(meta("durable_round"));
}

Hub::~Hub() = default;

std::string Hub::meta(const std::string& key) {
  io::Statement query(database_, "SELECT value FROM meta WHERE key = ?1");
  query.bind(1, key);
  return query.next() ? query.text(0) : "";
}

void Hub::set_meta(const std::string& key, const std::string& value) {
  io::Statement(database_, "INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)")
      .bind(1, key)
      .bind(2, value)
      .next();
}

Joined Hub::join(const std::string& name, const std::string& fingerprint) {
  const std::lock_guard lock(mutex_);
  io::Statement known(
      database_,
      "SELECT client, name, fingerprint, revoked, seen_round, seen_digest FROM members WHERE name = ?1 OR "
      "fingerprint = ?2");
  known.bind(1, name).bind(2, fingerprint);
  while (known.next()) {
    const bool revoked = known.integer(3) != 0;
    const bool same = known.text(2) == fingerprint;
    if (revoked && same) throw Refused(fmt::format("the certificate of '{}' was revoked", name));
    if (known.text(1) != name || (!same && !revoked)) {
      throw Refused(fmt::format("'{}' has joined with another certificate; ask the operator", name));
    }
    const int64_t client = known.integer(0);
    if (revoked) {
      io::Statement(database_, "UPDATE members SET fingerprint = ?1, revoked = 0 WHERE client = ?2")
          .bind(1, fingerprint)
          .bind(2, client)
          .next();
    }
    hear_of(client);
    left_.erase(client);
    return {client, known.integer(4), known.text(5)};
  }
  io::Statement count(database_, "SELECT COUNT(*) FROM members");
  count.next();
  const int64_t client = count.integer(0);
  const int64_t places = plan_.setup().spec().data.clients;
  if (client >= places) throw Refused(fmt::format("all {} places of this federation are taken", places));
  {
    io::Database::Transaction transaction(database_, kDurably);
    io::Statement(database_, "INSERT INTO members VALUES (?1, ?2, ?3, 0, 0, '')")
        .bind(1, client)
        .bind(2, name)
        .bind(3, fingerprint)
        .next();
    transaction.commit();
  }
  hear_of(client);
  fault_point("serve.joined");
  changed_.notify_all();
  return {.client = client, .seen_round = 0, .seen_digest = ""};
}

std::optional<int64_t> Hub::member(const std::string& fingerprint) {
  const std::lock_guard lock(mutex_);
  io::Statement query(database_, "SELECT client FROM members WHERE fingerprint = ?1 AND revoked = 0");
  query.bind(1, fingerprint);
  if (!query.next()) return std::nullopt;
  hear_of(query.integer(0));
  return query.integer(0);
}

void Hub::revoke(const std::string& fingerprint) {
  const std::lock_guard lock(mutex_);
  io::Statement(database_, "UPDATE members SET revoked = 1 WHERE fingerprint = ?1").bind(1, fingerprint).next();
  changed_.notify_all();
}

void Hub::hear_of(int64_t client) {
  last_seen_[client] = seconds_now();
  heard_.insert(client);
}

// For whoever looks at the folder from outside. Not worth stopping for.
void Hub::write_down_who_is_here() {
  if (heard_.empty() || Clock::now() < written_down_ + kWriteDownEvery) return;
  written_down_ = Clock::now();
  try {
    io::Database::Transaction transaction(database_);
    for (const int64_t client : heard_) {
      io::Statement(database_, "INSERT OR REPLACE INTO presence VALUES (?1, ?2)")
          .bind(1, client)
          .bind(2, last_seen_[client])
          .next();
    }
    transaction.commit();
    heard_.clear();
  } catch (const UserError& error) {
    warn("who is here cannot be written down: {}", error.what());
  }
}

bool Hub::reported(int64_t round, int64_t client) {
  io::Statement query(database_, "SELECT 1 FROM uploads WHERE round = ?1 AND client = ?2");
  query.bind(1, round).bind(2, client);
  return query.next();
}

int64_t Hub::reports(int64_t round) {
  io::Statement query(database_, "SELECT COUNT(*) FROM uploads WHERE round = ?1");
  query.bind(1, round);
  query.next();
  return query.integer(0);
}

std::string Hub::offered_digest(int64_t round, int64_t client) {
  io::Statement query(database_, "SELECT digest FROM offers WHERE round = ?1 AND client = ?2");
  query.bind(1, round).bind(2, client);
  return query.next() ? query.text(0) : "";
}

bool Hub::is_stored(const Offer& offer, int64_t client) {
  io::Statement query(database_, "SELECT 1 FROM uploads WHERE round = ?1 AND client = ?2 AND key = ?3 AND digest = ?4");
  query.bind(1, offer.round).bind(2, client).bind(3, offer.key).bind(4, offer.digest);
  return query.next();
}

// From here on the client may send, and a copy of its home that knows nothing of it is too old, whatever comes of it.
void Hub::remember(const Offer& offer, int64_t client) {
  io::Database::Transaction transaction(database_, kDurably);
  io::Statement(database_, "INSERT INTO offers VALUES (?1, ?2, ?3)")
      .bind(1, offer.round)
      .bind(2, client)
      .bind(3, offer.digest)
      .next();
  io::Statement(database_, "UPDATE members SET seen_round = ?1, seen_digest = ?2 WHERE client = ?3")
      .bind(1, offer.round)
      .bind(2, offer.digest)
      .bind(3, client)
      .next();
  transaction.commit();
  fault_point("serve.offered");
}

Work Hub::work_for(int64_t client) {
  const std::lock_guard lock(mutex_);
  return work_at_hand(client);
}

Work Hub::work_at_hand(int64_t client) {
  Work work{.durable_round = durable_round_};
  if (over_) {
    work.kind = Work::Kind::kOver;
    work.round = plan_.setup().spec().rounds;
  } else if (round_ != 0 && !frozen_ && cohort_.contains(client) && !reported(round_, client)) {
    work.kind = Work::Kind::kRound;
    work.round = round_;
  }
  if (work.kind != Work::Kind::kNothing) {
    work.digest = broadcast_digest_;
    work.bytes = broadcast_bytes_;
  }
  return work;
}

int64_t Hub::when_there_is_work(int64_t client, std::function<void()> call) {
  bool already = false;
  int64_t ticket = 0;
  {
    const std::lock_guard lock(mutex_);
    already = ending_ || work_at_hand(client).kind != Work::Kind::kNothing;
    ticket = next_ticket_++;
    if (!already) waiters_[ticket] = {client, call};
  }
  if (already) call();
  return ticket;
}

void Hub::no_longer_wait(int64_t ticket) {
  const std::lock_guard lock(mutex_);
  waiters_.erase(ticket);
}

void Hub::stop_waiting() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake();
}

// Those whom the open round concerns; all of them once it is over.
void Hub::wake() {
  std::vector<std::function<void()>> calls;
  {
    const std::lock_guard lock(mutex_);
    for (auto it = waiters_.begin(); it != waiters_.end();) {
      if (!over_ && !ending_ && !cohort_.contains(it->second.client)) {
        ++it;
        continue;
      }
      calls.push_back(std::move(it->second.call));
      it = waiters_.erase(it);
    }
  }
  for (const auto& call : calls) call();
}

fs::path Hub::spool(int64_t round) const {
  return folder_ / "spool" / fmt::format("{:06}", round);
}

Answer Hub::offer(int64_t client, const Offer& offer) {
  std::unique_lock lock(mutex_);
  if (offer.key != plan_.upload_key(client, offer.round)) return refused("its key is of another plan, round or client");
  if (!is_digest(offer.digest)) return refused("its digest is no SHA-256");
  if (offer.bytes <= 0 || offer.bytes > kLargestUpload) return refused("an upload of no or too many bytes");
  if (offer.releases.size() > kMostReleases) return refused("the description of its releases is too long");
  const std::string offered = offered_digest(offer.round, client);
  if (!offered.empty() && offered != offer.digest) {
    warn("client {} offers another upload for round {} than before; it is refused", client, offer.round);
    return refused("another upload was offered for this round");
  }
  if (is_stored(offer, client)) return {.verdict = Verdict::kStored};
  if (offer.round != round_ || frozen_) return {.verdict = Verdict::kLate};
  if (!cohort_.contains(client)) return refused("this round did not ask for it");
  const auto under_way = incoming_.find(client);
  if (under_way != incoming_.end() && under_way->second->offer.digest == offer.digest) {
    return {.verdict = Verdict::kSend, .offset = under_way->second->received};
  }
  if (under_way == incoming_.end() && incoming_.size() >= kMostUploadsAtATime) return {.verdict = Verdict::kBusy};
  if (offered.empty()) remember(offer, client);
  const fs::path file = spool(round_) / fmt::format("{}-{}.part", client, offer.digest.substr(0, 16));
  auto incoming = std::make_shared<Incoming>(file, offer);
  // All of it came in before this process began: it is in order, or was damaged with that one's end.
  const bool complete = incoming->received == offer.bytes && sha256_of_file(file) == offer.digest;
  if (complete) return finish(client, offer, file, lock);
  if (incoming->received >= offer.bytes) {
    if (::ftruncate(incoming->descriptor, 0) != 0)
      fail_user("cannot write {}: {}", file.string(), std::strerror(errno));
    incoming->received = 0;
  }
  const int64_t offset = incoming->received;
  incoming_[client] = std::move(incoming);
  return {.verdict = Verdict::kSend, .offset = offset};
}

Answer Hub::append(int64_t client, const std::string& key, int64_t offset, std::string_view bytes) {
  std::unique_lock lock(mutex_);
  const auto found = incoming_.find(client);
  if (found == incoming_.end() || found->second->offer.key != key) return {.verdict = Verdict::kLate};
  const std::shared_ptr<Incoming> incoming = found->second;
  if (offset != incoming->received) return {.verdict = Verdict::kSend, .offset = incoming->received};
  const auto size = static_cast<int64_t>(bytes.size());
  if (size > incoming->offer.bytes - offset) {
    incoming_.erase(client);
    return refused("more bytes than were offered");
  }
  if (std::exchange(incoming->is_written_to, true)) return {.verdict = Verdict::kBusy};
  hear_of(client);
  lock.unlock();
  const bool written = incoming->write(offset, bytes);
  if (!written) warn("cannot write {}: {}", incoming->file.string(), std::strerror(errno));
  lock.lock();
  incoming->is_written_to = false;
  if (!written) return {.verdict = Verdict::kBusy};
  incoming->received = offset + size;
  if (incoming->received < incoming->offer.bytes) return {.verdict = Verdict::kSend, .offset = incoming->received};
  fault_point("serve.received");
  if (incoming->digest.hex() != incoming->offer.digest) {
    if (incoming->is_inherited) return ask_again(client, *incoming);
    return refuse(client, incoming->file, "the bytes are not those that were offered");
  }
  incoming->is_written_to = true;
  const Answer answer = finish(client, incoming->offer, incoming->file, lock);
  lock.unlock();
  incoming->begin_to_sync();
  return answer;
}

Answer Hub::finish(int64_t client, const Offer& offer, const fs::path& part, std::unique_lock<std::mutex>& lock) {
  const Inspector inspector = inspector_;
  lock.unlock();
  std::string wrong = inspector ? inspector(offer.round, client, {part, offer.releases}) : "";
  lock.lock();
  if (!wrong.empty()) return refuse(client, part, std::move(wrong));
  incoming_.erase(client);
  if (offer.round != round_ || frozen_) return {.verdict = Verdict::kLate};
  if (reported(offer.round, client)) return {.verdict = Verdict::kStored};
  fs::rename(part, spool(offer.round) / fmt::format("{}.upload", client));
  io::Database::Transaction transaction(database_);
  io::Statement(database_, "INSERT INTO uploads VALUES (?1, ?2, ?3, ?4, ?5, 0)")
      .bind(1, offer.round)
      .bind(2, client)
      .bind(3, offer.key)
      .bind(4, offer.digest)
      .bind(5, offer.releases)
      .next();
  transaction.commit();
  fault_point("serve.stored");
  changed_.notify_all();
  return {.verdict = Verdict::kStored};
}

Answer Hub::ask_again(int64_t client, const Incoming& damaged) {
  fs::remove(damaged.file);
  incoming_[client] = std::make_shared<Incoming>(damaged.file, damaged.offer);
  return {.verdict = Verdict::kSend, .offset = 0};
}

Answer Hub::refuse(int64_t client, const fs::path& part, std::string reason) {
  incoming_.erase(client);
  fs::remove(part);
  return refused(std::move(reason));
}

void Hub::pause(int64_t client) {
  const std::lock_guard lock(mutex_);
  incoming_.erase(client);
}

Answer Hub::skip(int64_t client, int64_t round) {
  const std::lock_guard lock(mutex_);
  if (round != round_ || frozen_) return {.verdict = Verdict::kLate};
  if (!cohort_.contains(client)) return refused("this round did not ask for it");
  if (!reported(round, client)) {
    io::Statement(database_, "INSERT INTO uploads VALUES (?1, ?2, '', '', '', 1)")
        .bind(1, round)
        .bind(2, client)
        .next();
    changed_.notify_all();
  }
  return {.verdict = Verdict::kStored};
}

void Hub::leave(int64_t client) {
  const std::lock_guard lock(mutex_);
  left_.insert(client);
  last_seen_[client] = 0;
  heard_.insert(client);
  changed_.notify_all();
}

std::optional<fs::path> Hub::broadcast_file(const std::string& digest) {
  const std::lock_guard lock(mutex_);
  if (digest != broadcast_digest_ || digest.empty()) return std::nullopt;
  return broadcast_file_;
}

int64_t Hub::members() {
  const std::lock_guard lock(mutex_);
  io::Statement count(database_, "SELECT COUNT(*) FROM members WHERE revoked = 0");
  count.next();
  return count.integer(0);
}

bool Hub::wait_for_members(int64_t count, const std::function<bool()>& stop) {
  while (members() < count) {
    if (stop()) return false;
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kLook);
    write_down_who_is_here();
  }
  return true;
}

std::vector<int64_t> Hub::cohort(int64_t round, const std::function<std::vector<int64_t>()>& draw) {
  std::vector<int64_t> cohort;
  {
    const std::lock_guard lock(mutex_);
    io::Statement known(database_, "SELECT cohort FROM rounds WHERE round = ?1");
    known.bind(1, round);
    if (known.next()) {
      cohort = json::parse(known.text(0)).get<std::vector<int64_t>>();
    } else {
      cohort = draw();
      io::Database::Transaction transaction(database_, kDurably);
      io::Statement(database_, "INSERT INTO rounds VALUES (?1, ?2, '')")
          .bind(1, round)
          .bind(2, json(cohort).dump())
          .next();
      transaction.commit();
    }
    cohort_ = {cohort.begin(), cohort.end()};
  }
  fault_point("serve.opened");
  return cohort;
}

void Hub::publish(const methods::Broadcast& broadcast, bool is_final) {
  const fs::path file = folder_ / "broadcast" / fmt::format("{:06}.safetensors", broadcast.round);
  const std::string bytes =
      io::safetensors_bytes({.tensors = broadcast.values, .metadata = {{"round", std::to_string(broadcast.round)}}});
  write_file_atomically(file, bytes);
  {
    const std::lock_guard lock(mutex_);
    broadcast_digest_ = sha256(bytes);
    broadcast_bytes_ = static_cast<int64_t>(bytes.size());
    broadcast_file_ = file;
    over_ = is_final;
    round_ = is_final ? 0 : broadcast.round + 1;
    if (!is_final) make_folder(spool(round_));
    io::Statement frozen(database_, "SELECT reporters FROM rounds WHERE round = ?1");
    frozen.bind(1, round_);
    frozen_ = frozen.next() && !frozen.text(0).empty();
    incoming_.clear();
    if (!is_final && !frozen_) forget_lost_uploads();
  }
  for (const auto& entry : fs::directory_iterator(folder_ / "broadcast")) {
    if (entry.path() != file) fs::remove(entry.path());
  }
  fault_point("serve.published");
  wake();
}

// A power cut may have taken files that were not synced yet. Whoever sent them sends them again.
void Hub::forget_lost_uploads() {
  std::vector<int64_t> lost;
  io::Statement query(database_, "SELECT client, digest FROM uploads WHERE round = ?1 AND skipped = 0");
  query.bind(1, round_);
  while (query.next()) {
    const fs::path file = spool(round_) / fmt::format("{}.upload", query.integer(0));
    if (!fs::exists(file) || sha256_of_file(file) != query.text(1)) lost.push_back(query.integer(0));
  }
  for (const int64_t client : lost) {
    io::Statement(database_, "DELETE FROM uploads WHERE round = ?1 AND client = ?2")
        .bind(1, round_)
        .bind(2, client)
        .next();
  }
}

std::optional<std::vector<int64_t>> Hub::collect(int64_t round, const std::function<bool()>& stop,
                                                 std::optional<int64_t> quorum) {
  const int64_t enough = quorum.value_or(plan_.terms().quorum);
  const auto period =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(plan_.terms().deadline_seconds));
  std::unique_lock lock(mutex_);
  SOTTO_INVARIANT(round == round_);
  Clock::time_point deadline = Clock::now() + period;
  const auto expected = static_cast<int64_t>(cohort_.size());
  while (!frozen_ && reports(round) < expected) {
    if (stop()) return std::nullopt;
    if (Clock::now() >= deadline) {
      if (reports(round) >= enough) break;
      warn("round {}: {} of {} have reported, and the quorum is {}; waiting on", round, reports(round), expected,
           enough);
      deadline = Clock::now() + period;
    }
    changed_.wait_for(lock, kLook);
    write_down_who_is_here();
  }
  io::Statement query(database_, "SELECT client FROM uploads WHERE round = ?1 AND skipped = 0 ORDER BY client");
  query.bind(1, round);
  std::vector<int64_t> reporters;
  while (query.next()) reporters.push_back(query.integer(0));
  if (!std::exchange(frozen_, true)) {
    // Nobody is let in any more, and everybody else need not wait for the disk.
    lock.unlock();
    for (const int64_t client : reporters) sync_file(spool(round) / fmt::format("{}.upload", client));
    sync_folder(spool(round));
    lock.lock();
    io::Database::Transaction transaction(database_, kDurably);
    io::Statement(database_, "UPDATE rounds SET reporters = ?1 WHERE round = ?2")
        .bind(1, json(reporters).dump())
        .bind(2, round)
        .next();
    transaction.commit();
  }
  lock.unlock();
  fault_point("serve.frozen");
  return reporters;
}

Upload Hub::upload(int64_t round, int64_t client) {
  const std::lock_guard lock(mutex_);
  io::Statement query(database_, "SELECT releases FROM uploads WHERE round = ?1 AND client = ?2");
  query.bind(1, round).bind(2, client);
  query.next();
  return {spool(round) / fmt::format("{}.upload", client), query.text(0)};
}

void Hub::close(int64_t round) {
  {
    const std::lock_guard lock(mutex_);
    io::Database::Transaction transaction(database_, kDurably);
    set_meta("durable_round", std::to_string(round));
    transaction.commit();
    durable_round_ = round;
  }
  fault_point("serve.closed");
  fs::remove_all(spool(round));
}

bool Hub::wait_until_all_left(const std::function<bool()>& stop) {
  while (true) {
    const int64_t joined = members();
    std::unique_lock lock(mutex_);
    if (static_cast<int64_t>(left_.size()) >= joined) return true;
    if (stop()) return false;
    changed_.wait_for(lock, kLook);
    write_down_who_is_here();
  }
}

std::vector<MemberStatus> Hub::status() {
  const std::lock_guard lock(mutex_);
  io::Statement query(database_,
                      "SELECT client, name, revoked, seen_round, (SELECT COUNT(*) FROM uploads WHERE uploads.client = "
                      "members.client AND skipped = 0 AND round <= ?1) FROM members ORDER BY client");
  query.bind(1, plan_.setup().spec().rounds);
  std::vector<MemberStatus> all;
  while (query.next()) {
    const auto seen = last_seen_.find(query.integer(0));
    all.push_back({.client = query.integer(0),
                   .name = query.text(1),
                   .participations = query.integer(4),
                   .last_round = query.integer(3),
                   .last_seen = seen == last_seen_.end() ? 0 : seen->second,
                   .revoked = query.integer(2) != 0});
  }
  return all;
}

int64_t Hub::open_round() {
  const std::lock_guard lock(mutex_);
  return round_;
}

int64_t Hub::durable_round() {
  const std::lock_guard lock(mutex_);
  return durable_round_;
}

}  // namespace sotto::serve
