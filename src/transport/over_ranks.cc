#include "transport/over_ranks.h"

#include "base/error.h"
#include "base/fault_points.h"
#include "transport/ahead.h"
#include "transport/rank_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace sotto::transport {
namespace {

using federation::ClientRuntime;
using federation::ClientScore;
using federation::Predictions;
using federation::Reply;
using methods::Broadcast;
using nlohmann::json;

using Clock = std::chrono::steady_clock;

constexpr const char* kBegin = "begin";
constexpr const char* kLearn = "learn";
constexpr const char* kTrain = "train";
constexpr const char* kTest = "test";
constexpr const char* kEvaluate = "evaluate";
constexpr const char* kCommit = "commit";
constexpr const char* kEnd = "end";

constexpr int64_t kRowsAtATime = 1000;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Counts the time from here to the end of its scope.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() { seconds_ += seconds_since(begin_); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& seconds_;
  const Clock::time_point begin_ = Clock::now();
};

// What work() gives; how long it took is added.
template <typename Work>
auto timed(double& seconds, const Work& work) {
  const Stopwatch watch(seconds);
  return work();
}

int64_t size_of(const std::string& bytes) {
  return static_cast<int64_t>(bytes.size());
}

std::string state_to_bytes(const privacy::PrivateState* state) {
  return to_bytes(Message{{{"there", state != nullptr}}, state != nullptr ? tensors_to_bytes(state->values()) : ""});
}

std::optional<privacy::PrivateState> state_from(const std::string& bytes) {
  Message message = message_from(bytes);
  if (!message.header.at("there")) return std::nullopt;
  return privacy::PrivateState(tensors_from(std::move(message.payload)));
}

// The states of one round at one rank: of its own clients, and of those that are lent to it.
//
// All ranks go through the loans in the order of the cohort, so that whoever sends is met by who receives.
class RoundStates : public federation::StateStore {
 public:
  // Counts how long states are packed and unpacked.
  RoundStates(const RankParts& parts, const std::vector<Seat>& seats, double& packing_seconds)
      : own_(parts.states), ranks_(parts.ranks), packing_seconds_(packing_seconds) {
    for (const Seat& seat : seats) {
      if (seat.home == seat.at) continue;
      loans_.push_back(seat);
      if (seat.home == ranks_.rank()) {
        const privacy::PrivateState state = own_.get(seat.client);
        ranks_.send(seat.at, packed(&state));
      } else if (seat.at == ranks_.rank()) {
        borrowed_[seat.client].before = *unpacked(ranks_.receive(seat.home));
      }
    }
  }

  privacy::PrivateState get(int64_t client) const override {
    const auto found = borrowed_.find(client);
    return found == borrowed_.end() ? own_.get(client) : found->second.before;
  }
  void put(int64_t client, int64_t round, privacy::PrivateState state) override {
    const auto found = borrowed_.find(client);
    if (found == borrowed_.end()) return own_.put(client, round, std::move(state));
    found->second.after = std::move(state);
  }
  void commit(int64_t) override {}
  void restore(int64_t) override {}

  // When all work is done.
  void give_back(int64_t round) {
    for (const Seat& seat : loans_) {
      if (seat.at == ranks_.rank()) {
        const auto& after = borrowed_.at(seat.client).after;
        ranks_.send(seat.home, packed(after ? &*after : nullptr));
      } else if (seat.home == ranks_.rank()) {
        if (auto after = unpacked(ranks_.receive(seat.at))) own_.put(seat.client, round, std::move(*after));
      }
    }
  }

 private:
  struct Loan {
    privacy::PrivateState before;
    std::optional<privacy::PrivateState> after;
  };
  std::string packed(const privacy::PrivateState* state) {
    return timed(packing_seconds_, [&] { return state_to_bytes(state); });
  }
  std::optional<privacy::PrivateState> unpacked(const std::string& bytes) {
    return timed(packing_seconds_, [&] { return state_from(bytes); });
  }

  federation::StateStore& own_;
  Ranks& ranks_;
  double& packing_seconds_;
  std::vector<Seat> loans_;
  std::map<int64_t, Loan> borrowed_;
};

std::vector<Seat> seats_at(const std::vector<Seat>& seats, int rank) {
  std::vector<Seat> here;
  std::copy_if(seats.begin(), seats.end(), std::back_inserter(here), [&](const Seat& seat) { return seat.at == rank; });
  return here;
}

json seats_to_json(const std::vector<Seat>& seats) {
  json value = json::array();
  for (const Seat& seat : seats) value.push_back({seat.client, seat.participation, seat.home, seat.at});
  return value;
}

std::vector<Seat> seats_from(const json& value) {
  std::vector<Seat> seats;
  for (const json& seat : value) seats.push_back({seat.at(0), seat.at(1), seat.at(2), seat.at(3)});
  return seats;
}

ClientRuntime client_at(const RankParts& parts, federation::StateStore& states, int64_t client, int worker) {
  return {parts.setup, client, *parts.workers[static_cast<size_t>(worker)], states, parts.ledger};
}

int threads_of(const RankParts& parts) {
  return static_cast<int>(parts.workers.size());
}

// Those of items 0 … count-1 that are this rank's.
std::vector<int64_t> share_of(int64_t count, const Ranks& ranks) {
  std::vector<int64_t> share;
  for (int64_t item = ranks.rank(); item < count; item += ranks.size()) share.push_back(item);
  return share;
}

std::vector<int64_t> living_at(const std::vector<int64_t>& clients, const Ranks& ranks) {
  std::vector<int64_t> here;
  std::copy_if(clients.begin(), clients.end(), std::back_inserter(here),
               [&](int64_t client) { return client % ranks.size() == ranks.rank(); });
  return here;
}

Predictions test_chunk_at(const RankParts& parts, int64_t chunk, int worker) {
  return federation::predict(*parts.workers[static_cast<size_t>(worker)], parts.held_out.records,
                             federation::test_chunk(parts.held_out, chunk));
}

// The rows that are written to a ledger from here on. Each is read once, whoever asks for his.
class NewRows {
 public:
  explicit NewRows(const privacy::Ledger& ledger) : ledger_(ledger), read_(ledger.rows()) {}

  std::vector<privacy::Event> take_those_of(int64_t client) {
    const std::lock_guard lock(mutex_);
    for (privacy::Event& row : ledger_.events_after(read_)) {
      ++read_;
      rows_[row.client].push_back(std::move(row));
    }
    return std::exchange(rows_[client], {});
  }

 private:
  const privacy::Ledger& ledger_;
  std::mutex mutex_;
  int64_t read_;
  std::map<int64_t, std::vector<privacy::Event>> rows_;
};

// One of the other ranks.
class Helper {
 public:
  explicit Helper(const RankParts& parts) : parts_(parts) {
    const config::RunSpec& spec = parts.setup.spec();
    if (spec.privacy) {
      parts.ledger.agree(*spec.privacy, spec.as_printed() ? privacy::HeldTo::kClaimed : privacy::HeldTo::kProven);
    }
  }

  // False once the federation is over.
  bool obey(Message message) {
    const std::string what = message.header.at("do");
    if (!message.payload.empty()) {
      broadcast_ = {message.header.at("round"), tensors_from(std::move(message.payload))};
    }
    if (what == kBegin) parts_.states.restore(message.header.at("round"));
    if (what == kLearn) learn(rows_from(message.header.at("rows")));
    if (what == kTrain) train(seats_from(message.header.at("seats")));
    if (what == kTest) test();
    if (what == kEvaluate) evaluate(message.header.at("clients").get<std::vector<int64_t>>());
    if (what == kCommit) commit(message.header.at("round"));
    return what != kEnd;
  }

 private:
  // What the others have released since. Rows of those that were served here are here already.
  void learn(const std::vector<privacy::Event>& rows) {
    for (const privacy::Event& row : rows) {
      if (row.round != served_in_ || !served_.contains(row.client)) parts_.ledger.take_over(row);
    }
  }

  void train(const std::vector<Seat>& seats) {
    const int64_t round = broadcast_.round + 1;
    const std::vector<Seat> here = seats_at(seats, parts_.ranks.rank());
    served_in_ = round;
    served_.clear();
    for (const Seat& seat : here) served_.insert(seat.client);
    NewRows rows(parts_.ledger);
    RoundStates states(parts_, seats, packing_seconds_);
    send_all(static_cast<int64_t>(here.size()), [&](int64_t item, int worker) {
      const Seat& seat = here[static_cast<size_t>(item)];
      const Reply reply = client_at(parts_, states, seat.client, worker).serve(broadcast_, seat.participation);
      fault_point(fmt::format("rank-{}.trained", parts_.ranks.rank()).c_str());
      return to_bytes(reply, rows.take_those_of(seat.client));
    });
    states.give_back(round);
  }

  void test() {
    for (auto& worker : parts_.workers) worker->select(broadcast_, {});
    const auto chunks = share_of(federation::test_chunks(parts_.held_out), parts_.ranks);
    send_all(static_cast<int64_t>(chunks.size()), [&](int64_t item, int worker) {
      return to_bytes(test_chunk_at(parts_, chunks[static_cast<size_t>(item)], worker));
    });
  }

  void evaluate(const std::vector<int64_t>& clients) {
    const auto here = living_at(clients, parts_.ranks);
    send_all(static_cast<int64_t>(here.size()), [&](int64_t item, int worker) {
      return to_bytes(client_at(parts_, parts_.states, here[static_cast<size_t>(item)], worker)
                          .evaluate(broadcast_, parts_.held_out));
    });
  }

  void commit(int64_t round) {
    parts_.states.commit(round);
    fault_point(fmt::format("rank-{}.committed", parts_.ranks.rank()).c_str());
    parts_.ranks.send(0, to_bytes(Message{{{"committed", round}}, ""}));
  }

  void send_all(int64_t count, const std::function<std::string(int64_t item, int worker)>& work) {
    Ahead<std::string> answers(count, threads_of(parts_), work, size_of);
    for (int64_t i = 0; i < count; ++i) parts_.ranks.send(0, answers.next());
  }

  const RankParts parts_;
  Broadcast broadcast_;
  int64_t served_in_ = 0;
  std::set<int64_t> served_;
  double packing_seconds_ = 0;  // nobody asks for
};

}  // namespace

std::vector<Seat> seat_clients(const std::vector<int64_t>& cohort, int ranks) {
  std::vector<Seat> seats;
  std::vector<int64_t> load(static_cast<size_t>(ranks));
  for (const int64_t client : cohort) {
    const int home = static_cast<int>(client % ranks);
    seats.push_back({.client = client, .participation = 1, .home = home, .at = home});
    ++load[static_cast<size_t>(home)];
  }
  const int64_t share = (static_cast<int64_t>(cohort.size()) + ranks - 1) / ranks;
  for (auto seat = seats.rbegin(); seat != seats.rend(); ++seat) {
    if (load[static_cast<size_t>(seat->home)] <= share) continue;
    const auto idlest = std::min_element(load.begin(), load.end());
    --load[static_cast<size_t>(seat->home)];
    ++*idlest;
    seat->at = static_cast<int>(idlest - load.begin());
  }
  return seats;
}

OverRanks::OverRanks(const RankParts& parts, const federation::CohortSchedule& cohorts, int64_t round)
    : parts_(parts), participations_(cohorts, parts.setup.spec().data.clients) {
  tell([&] { return json{{"do", kBegin}, {"round", round}}; }, nullptr);
  tell_past();
  parts_.states.restore(round);
}

OverRanks::~OverRanks() {
  if (!at_rest_) return;
  try {
    tell([] { return json{{"do", kEnd}}; }, nullptr);
  } catch (...) {  // NOLINT(bugprone-empty-catch): the process ends, and the job with it
  }
}

// The broadcast goes along if the others do not have it yet.
void OverRanks::tell(const std::function<json()>& header, const Broadcast* broadcast) {
  std::string bytes = timed(traffic_.seconds, [&] {
    Message message{header(), ""};
    if (broadcast != nullptr && broadcast->round != held_round_) {
      message.header["round"] = held_round_ = broadcast->round;
      message.payload = tensors_to_bytes(broadcast->values);
    }
    return to_bytes(message);
  });
  parts_.ranks.broadcast(bytes);
}

// What was released before this federation goes on here, in parts: the ledger of a long run is not one message. Where
// nobody has a budget, nobody asks.
void OverRanks::tell_past() {
  const config::RunSpec& spec = parts_.setup.spec();
  rows_told_ = parts_.ledger.rows();
  if (!spec.privacy || rows_told_ == 0) return;
  const int64_t cohort = spec.federation.cohort > 0 ? spec.federation.cohort : spec.data.clients;
  const int64_t rounds_at_a_time = std::max<int64_t>(1, kRowsAtATime / cohort);
  int64_t first = std::numeric_limits<int64_t>::min();
  for (int64_t last = rounds_at_a_time; last < spec.rounds; last += rounds_at_a_time) {
    tell_rows(parts_.ledger.events(first, last));
    first = last + 1;
  }
  tell_rows(parts_.ledger.events(first, std::numeric_limits<int64_t>::max()));
}

// What was released since the others were told last.
void OverRanks::tell_news() {
  if (!parts_.setup.spec().privacy) return;
  const auto rows = parts_.ledger.events_after(rows_told_);
  rows_told_ += std::ssize(rows);
  tell_rows(rows);
}

void OverRanks::tell_rows(const std::vector<privacy::Event>& rows) {
  if (!rows.empty()) tell([&] { return json{{"do", kLearn}, {"rows", rows_to_json(rows)}}; }, nullptr);
}

template <typename Unpack>
auto OverRanks::received(int from, const Unpack& unpack) {
  const std::string bytes = parts_.ranks.receive(from);
  return timed(traffic_.seconds, [&] { return unpack(bytes); });
}

void OverRanks::exchange(const std::vector<int64_t>& cohort, const Broadcast& broadcast,
                         const std::function<void(Reply&&)>& accept) {
  const int64_t round = broadcast.round + 1;
  participations_.count_up_to(round);
  std::vector<Seat> seats = seat_clients(cohort, parts_.ranks.size());
  for (Seat& seat : seats) seat.participation = participations_.of(seat.client);
  at_rest_ = false;
  tell_news();
  tell([&] { return json{{"do", kTrain}, {"seats", seats_to_json(seats)}}; }, &broadcast);

  RoundStates states(parts_, seats, traffic_.seconds);
  const std::vector<Seat> here = seats_at(seats, 0);
  Ahead<Reply> own(
      static_cast<int64_t>(here.size()), threads_of(parts_),
      [&](int64_t item, int worker) {
        const Seat& seat = here[static_cast<size_t>(item)];
        Reply reply = client_at(parts_, states, seat.client, worker).serve(broadcast, seat.participation);
        fault_point("rank-0.trained");
        return reply;
      },
      [](const Reply& reply) {
        int64_t bytes = 0;
        if (!reply.upload) return bytes;
        for (const NamedTensor& tensor : reply.upload->values()) bytes += static_cast<int64_t>(tensor.value.nbytes());
        return bytes;
      });
  const privacy::UploadShape shape = parts_.setup.method().upload_shape(parts_.setup.public_context(), broadcast);
  for (const Seat& seat : seats) {
    if (seat.at == 0) {
      accept(own.next());
      continue;
    }
    const std::string bytes = parts_.ranks.receive(seat.at);
    const Stopwatch watch(traffic_.upload_seconds);
    ReplyAndRows answer = timed(traffic_.seconds, [&] { return reply_from(bytes, shape); });
    int64_t last_row = 0;
    for (const privacy::Event& row : answer.rows) last_row = parts_.ledger.take_over(row).row();
    if (answer.reply.upload) parts_.ledger.commit_through(last_row);
    accept(std::move(answer.reply));
    ++traffic_.uploads;
  }
  states.give_back(round);
  at_rest_ = true;
}

Predictions OverRanks::test(const Broadcast& broadcast) {
  at_rest_ = false;
  tell([] { return json{{"do", kTest}}; }, &broadcast);
  for (auto& worker : parts_.workers) worker->select(broadcast, {});
  const int64_t chunks = federation::test_chunks(parts_.held_out);
  const auto here = share_of(chunks, parts_.ranks);
  Ahead<Predictions> own(
      static_cast<int64_t>(here.size()), threads_of(parts_),
      [&](int64_t item, int worker) { return test_chunk_at(parts_, here[static_cast<size_t>(item)], worker); },
      [](const Predictions& part) { return static_cast<int64_t>(part.truth.nbytes()); });
  std::vector<Predictions> parts;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    const int at = static_cast<int>(chunk % parts_.ranks.size());
    parts.push_back(at == 0 ? own.next() : received(at, predictions_from));
  }
  at_rest_ = true;
  return federation::concatenate(parts);
}

void OverRanks::evaluate(const std::vector<int64_t>& clients, const Broadcast& broadcast,
                         const std::function<void(ClientScore&&)>& accept) {
  at_rest_ = false;
  tell([&] { return json{{"do", kEvaluate}, {"clients", clients}}; }, &broadcast);
  const auto here = living_at(clients, parts_.ranks);
  Ahead<ClientScore> own(
      static_cast<int64_t>(here.size()), threads_of(parts_),
      [&](int64_t item, int worker) {
        return client_at(parts_, parts_.states, here[static_cast<size_t>(item)], worker)
            .evaluate(broadcast, parts_.held_out);
      },
      [](const ClientScore&) { return int64_t{1}; });
  for (const int64_t client : clients) {
    const int at = static_cast<int>(client % parts_.ranks.size());
    accept(at == 0 ? own.next() : received(at, score_from));
  }
  at_rest_ = true;
}

void OverRanks::commit_states(int64_t round) {
  at_rest_ = false;
  tell([&] { return json{{"do", kCommit}, {"round", round}}; }, nullptr);
  parts_.states.commit(round);
  for (int rank = 1; rank < parts_.ranks.size(); ++rank) {
    SOTTO_INVARIANT(message_from(parts_.ranks.receive(rank)).header.at("committed") == round);
  }
  at_rest_ = true;
}

Traffic OverRanks::traffic() const {
  Traffic traffic = traffic_;
  traffic.seconds += parts_.ranks.seconds_moving();
  return traffic;
}

void dismiss(Ranks& ranks) {
  std::string bytes = to_bytes(Message{{{"do", kEnd}}, ""});
  ranks.broadcast(bytes);
  ranks.finish();
}

void work_for_rank_0(const federation::Setup& setup,
                     const std::function<std::unique_ptr<federation::StateStore>()>& make_states, Ranks& ranks,
                     int threads) {
  const federation::HeldOut held_out(setup, federation::evaluated_clients(setup.spec()));
  federation::Workers workers = federation::make_workers(setup, threads);
  privacy::Ledger ledger;
  std::string bytes;
  ranks.broadcast(bytes);
  if (message_from(bytes).header.at("do") == kEnd) return;
  const auto states = make_states();
  Helper helper({setup, held_out, workers, *states, ledger, ranks});
  while (helper.obey(message_from(bytes))) ranks.broadcast(bytes);
}

}  // namespace sotto::transport
