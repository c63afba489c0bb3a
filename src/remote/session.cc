#include "remote/session.h"

#include "base/error.h"
#include "base/fault_points.h"
#include "base/files.h"
#include "base/json_number.h"
#include "base/log.h"
#include "io/safetensors.h"
#include "member/federation_folder.h"
#include "member/records.h"
#include "remote/address.h"
#include "remote/preflight.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <stop_token>
#include <thread>
#include <utility>

namespace sotto::remote {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

constexpr auto kShortestPause = std::chrono::milliseconds(100);
constexpr auto kLook = std::chrono::milliseconds(100);
constexpr auto kLongestPause = std::chrono::milliseconds(5000);

// Tries again while the server is away, with growing pauses, until patience ends.
class Patience {
 public:
  Patience(double seconds, const std::function<bool()>& stop)
      : limit_(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))), stop_(stop) {}

  template <typename Ask>
  auto operator()(const Ask& ask) {
    const auto begin = Clock::now();
    auto pause = kShortestPause;
    bool said = false;
    while (true) {
      try {
        return ask();
      } catch (const Unreachable& problem) {
        if (stop_() || Clock::now() - begin > limit_) throw;
        if (!std::exchange(said, true)) info("{}; trying again", problem.what());
      }
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, kLongestPause);
    }
  }

 private:
  Clock::duration limit_;
  const std::function<bool()>& stop_;
};

methods::Broadcast broadcast_of(std::string bytes, int64_t round) {
  return {round, clone(io::parse_safetensors(std::move(bytes), "the broadcast").tensors)};
}

json to_json(const SessionRound& round) {
  return {{"round", round.round},
          {"sent", round.sent},
          {"accuracy", number_or_null(round.score.accuracy)},
          {"balanced_accuracy", number_or_null(round.score.balanced_accuracy)},
          {"auroc", number_or_null(round.score.auroc)},
          {"spent_epsilon", number_or_null(round.spent_epsilon)}};
}

double number_at(const json& object, const char* key, double null) {
  return object.at(key).is_null() ? null : object.at(key).get<double>();
}

SessionResult result_of(const json& kept, const fs::path& folder) {
  SessionResult result;
  result.finished = true;
  result.participations = kept.at("participations");
  result.score.accuracy = number_at(kept, "accuracy", federation::kUndefined);
  result.score.balanced_accuracy = number_at(kept, "balanced_accuracy", federation::kUndefined);
  result.score.auroc = number_at(kept, "auroc", federation::kUndefined);
  result.score.records = kept.at("records");
  result.spent_epsilon = number_at(kept, "spent_epsilon", std::numeric_limits<double>::infinity());
  result.folder = folder;
  return result;
}

class Session {
 public:
  Session(const SessionOptions& options, const member::Policy& policy)
      : options_(options),
        policy_(policy),
        patience_(options.patience, options.stop),
        client_(options.address.empty() ? policy.address : options.address,
                options.insecure ? std::nullopt : std::optional(checked_identity(options.home, policy)), policy.name),
        watch_([this](const std::stop_token& ended) {
          while (!ended.stop_requested()) {
            if (options_.stop()) client_.hang_up();
            std::this_thread::sleep_for(kLook);
          }
        }),
        plan_(patience_([&] { return client_.plan(); })),
        kept_(options.home, plan_.short_hash()) {}

  SessionResult run() {
    const auto data = member::load_records(policy_, plan_);
    data::DataOptions source = policy_.data;
    source.schema = plan_.setup().spec().data.schema;
    privacy::Home home(options_.home, member::home_records(source, *data));
    // Before the server hears of us: what is not allowed here is not even asked for.
    const int64_t records = federation::Setup::at_home(plan_.setup(), 0, data).partition().shard(0).size();
    member::require_allowed(policy_, plan_, records);
    member::require_affordable(home, policy_, plan_, records);
    if (options_.agree && !options_.agree(plan_, member::prospect(&home, policy_, plan_, records))) return {};
    const federation::Joined joined = patience_([&] { return client_.join(plan_.hash()); });
    if (joined.client < 0 || joined.client >= plan_.setup().spec().data.clients)
      fail_user("the server gives us no place");
    member::Member member(home, policy_, plan_, joined.client,
                          federation::Setup::at_home(plan_.setup(), joined.client, data));
    member.check_seen(joined.seen_round, joined.seen_digest);
    SessionResult result;
    result.folder = kept_.path();
    kept_.begin(plan_);
    follow(member, result);
    return result;
  }

 private:
  void follow(member::Member& member, SessionResult& result) {
    while (!options_.stop()) {
      const federation::Work task = patience_([&] {
        // After a break the server may be another process: it wants to know us again.
        try {
          return client_.next(plan_.hash());
        } catch (const Unreachable&) {
          rejoin(member);
          throw;
        }
      });
      member.settle(task.durable_round);
      if (task.kind == federation::Work::Kind::kRound) work(member, task);
      if (task.kind == federation::Work::Kind::kOver) {
        finish(member, task, result);
        return;
      }
    }
  }

  void rejoin(member::Member& member) {
    try {
      const federation::Joined joined = client_.join(plan_.hash());
      member.check_seen(joined.seen_round, joined.seen_digest);
    } catch (const Unreachable&) {  // NOLINT(bugprone-empty-catch): the next try says so
    }
  }

  std::optional<methods::Broadcast> fetch(const federation::Work& task, int64_t round) {
    try {
      return broadcast_of(client_.fetch(task.digest, task.bytes), round);
    } catch (const Unreachable& problem) {
      info("{}", problem.what());  // the round may be over by now: ask what is next
      std::this_thread::sleep_for(kShortestPause);
      return std::nullopt;
    }
  }

  void work(member::Member& member, const federation::Work& task) {
    const auto broadcast = fetch(task, task.round - 1);
    if (!broadcast) return;
    const member::Outcome outcome = member.work(*broadcast);
    kept_.keep_broadcast(*broadcast);
    SessionRound round;
    round.round = task.round;
    round.evaluation = task.round > plan_.setup().spec().rounds;
    try {
      if (outcome.upload) {
        round.sent = deliver(*outcome.upload);
      } else if (outcome.skips) {
        client_.skip(task.round);
      }
    } catch (const Unreachable& problem) {
      info("{}", problem.what());  // sealed bytes wait; the server asks for them again
      std::this_thread::sleep_for(kShortestPause);
      return;
    }
    round.why = outcome.why;
    if (options_.evaluates) round.score = member.evaluate(*broadcast);
    round.spent_epsilon = member.spent_epsilon();
    if ((outcome.upload || outcome.skips) && !round.evaluation) kept_.add_round(to_json(round));
    if (options_.round_done) options_.round_done(round);
    if (!outcome.upload && !outcome.skips) std::this_thread::sleep_for(kLongestPause);
  }

  bool deliver(const member::SealedUpload& upload) {
    const federation::Answer answer = client_.deliver(upload, upload.file, options_.stop);
    fault_point("member.sent");
    if (answer.verdict == federation::Verdict::kRefused) fail_user("the server refuses our upload: {}", answer.reason);
    return answer.verdict == federation::Verdict::kStored;
  }

  void finish(member::Member& member, const federation::Work& task, SessionResult& result) {
    const auto last = fetch(task, task.round);
    if (!last) return;
    kept_.keep_final(*last);
    fault_point("member.final-kept");
    result.score = member.evaluate(*last);
    result.participations = member.participations();
    result.spent_epsilon = member.spent_epsilon();
    result.finished = true;
    kept_.keep_result(to_json(result));
    try {
      client_.leave();
    } catch (const Unreachable&) {  // NOLINT(bugprone-empty-catch): the server need not wait for us
    }
    fault_point("member.left");
  }

  const SessionOptions& options_;
  const member::Policy& policy_;
  Patience patience_;
  Client client_;
  std::jthread watch_;  // ends a call that waits for the server when the owner wants to stop
  federation::FederationPlan plan_;
  member::FederationFolder kept_;
};

}  // namespace

SessionResult take_part(const SessionOptions& options) {
  for (const member::FederationFolder& folder : member::FederationFolder::all(options.home)) {
    if (const json kept = folder.unreported_result(); !kept.is_null()) return result_of(kept, folder.path());
  }
  const member::Policy policy = member::read_policy(options.home);
  if (options.address.empty() && policy.address.empty()) {
    fail_user("{} has no server.address; write it there, or give --server", (options.home / "policy.toml").string());
  }
  split_address(options.address.empty() ? policy.address : options.address);
  return Session(options, policy).run();
}

json to_json(const SessionResult& result) {
  return {{"participations", result.participations},
          {"accuracy", number_or_null(result.score.accuracy)},
          {"balanced_accuracy", number_or_null(result.score.balanced_accuracy)},
          {"auroc", number_or_null(result.score.auroc)},
          {"records", result.score.records},
          {"spent_epsilon", number_or_null(result.spent_epsilon)},
          {"folder", result.folder.string()}};
}

void mark_reported(const SessionResult& result) {
  fault_point("member.reported");
  member::FederationFolder(result.folder).forget_result();
}

}  // namespace sotto::remote
