// Messages that come twice, late, in another order, or again after all is over: over a real connection, to a real server.
#include "../serve/at_home.h"
#include "base/interrupt.h"
#include "remote/channel_options.h"
#include "remote/client.h"
#include "remote/federation.grpc.pb.h"
#include "remote/service.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>
#include <thread>

namespace sotto::remote {
namespace {

constexpr int64_t kClients = 2;
constexpr int64_t kRounds = 3;

std::string config() {
  return fmt::format(
      "rounds = {}\nseed = 7\n[data]\nclients = {}\n[federation]\nbatch = 16\nlr = 0.1\n[method]\nname = "
      "\"ldp-fedavg\"\n[privacy]\nepsilon = 8\ndelta = 1e-3\nadjacency = \"zero-out\"\n",
      kRounds, kClients);
}

using federation::Verdict;
using federation::Work;
using member::SealedUpload;

// A copy that outlives the home's own, as somebody who listened would have.
SealedUpload kept(SealedUpload upload, const fs::path& folder) {
  const fs::path copy = folder / fmt::format("kept-{}", upload.digest);
  fs::copy_file(upload.file, copy, fs::copy_options::overwrite_existing);
  upload.file = copy;
  return upload;
}

class Replays : public ::testing::Test {
 protected:
  Replays()
      : setup_(federation::small_setup(config())),
        plan_(serve::plan_of(setup_)),
        server_(folder_ / "server", plan_, [this] { return stop_.load(); }),
        service_(server_.hub(), plan_, {.address = "127.0.0.1:0", .server = {}, .authority_pem = ""}) {
    for (int64_t i = 0; i < kClients; ++i) {
      const std::string name = fmt::format("home-{}", i);
      clients_.push_back(std::make_unique<Client>(fmt::format("127.0.0.1:{}", service_.port()), std::nullopt, name));
      EXPECT_EQ(clients_.back()->join(plan_.hash()).client, i);
      homes_.push_back(std::make_unique<serve::HomeOf>(folder_ / name, setup_, plan_, i));
    }
    rounds_ = std::thread([this] {
      try {
        while (server_.next_round()) {
        }
        server_.finish();
      } catch (const Interrupted&) {  // NOLINT(bugprone-empty-catch): the test is over
      }
    });
  }
  ~Replays() override {
    stop_ = true;
    rounds_.join();
  }

  Work task_of(int64_t client) {
    Work task;
    while (task.kind == Work::Kind::kNothing) task = clients_[static_cast<size_t>(client)]->next(plan_.hash());
    return task;
  }
  SealedUpload work(int64_t client, const Work& task) {
    Client& connection = *clients_[static_cast<size_t>(client)];
    const methods::Broadcast broadcast{
        task.round - 1,
        clone(io::parse_safetensors(connection.fetch(task.digest, task.bytes), "the broadcast").tensors)};
    return *homes_[static_cast<size_t>(client)]->member().work(broadcast).upload;
  }
  federation::Answer answer_to(int64_t client, const SealedUpload& upload) {
    return clients_[static_cast<size_t>(client)]->deliver(upload, upload.file, [] { return false; });
  }
  Verdict deliver(int64_t client, const SealedUpload& upload) { return answer_to(client, upload).verdict; }

  test::TempFolder folder_;
  federation::Setup setup_;
  federation::FederationPlan plan_;
  std::atomic<bool> stop_ = false;
  serve::Server server_;
  Service service_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<std::unique_ptr<serve::HomeOf>> homes_;
  std::thread rounds_;
};

TEST_F(Replays, TheSameMessageTwiceCountsOnce) {
  std::vector<SealedUpload> old;
  for (int64_t round = 1; round <= kRounds; ++round) {
    for (int64_t client = 0; client < kClients; ++client) {
      const Work task = task_of(client);
      ASSERT_EQ(task.round, round);
      EXPECT_EQ(clients_[static_cast<size_t>(client)]->join(plan_.hash()).client, client) << "joining twice is joining";
      const SealedUpload upload = kept(work(client, task), folder_.path());
      EXPECT_EQ(deliver(client, upload), Verdict::kStored);
      EXPECT_EQ(deliver(client, upload), Verdict::kStored) << "it is here";
      // What was sent in earlier rounds, sent again: known by its digest, or too late; never used.
      if (client == 0) {
        for (const SealedUpload& earlier : old) EXPECT_NE(deliver(0, earlier), Verdict::kRefused);
        old.push_back(upload);
      }
      // Somebody who has reported cannot skip any more, nor the other way round.
      clients_[static_cast<size_t>(client)]->skip(round);
    }
  }
  EXPECT_EQ(task_of(0).kind, Work::Kind::kOver);
  // After the end, too.
  for (const SealedUpload& earlier : old) EXPECT_NE(deliver(0, earlier), Verdict::kRefused);
  std::set<std::pair<int64_t, int64_t>> rows;
  for (const privacy::Event& event : server_.ledger().events()) {
    EXPECT_TRUE(rows.emplace(event.round, event.client).second) << "a release was counted twice";
  }
  EXPECT_EQ(rows.size(), static_cast<size_t>(kClients * kRounds));
  for (const auto& home : homes_) EXPECT_EQ(home->home().ledger().rows(), kRounds);
  for (const auto& client : clients_) client->leave();
  EXPECT_NO_THROW(clients_[0]->leave()) << "twice";
}

// A client that sends its messages as it likes.
class Disorderly {
 public:
  Disorderly(int port, std::string name)
      : name_(std::move(name)),
        stub_(v1::Federation::NewStub(
            grpc::CreateChannel(fmt::format("127.0.0.1:{}", port), grpc::InsecureChannelCredentials()))) {}

  v1::OfferReply offer(const SealedUpload& upload) {
    grpc::ClientContext context;
    context.AddMetadata(kNameHeader, name_);
    v1::OfferRequest request;
    request.set_round(upload.round);
    request.set_key(upload.key);
    request.set_digest(upload.digest);
    request.set_bytes(upload.bytes);
    request.set_releases(upload.releases);
    v1::OfferReply reply;
    EXPECT_TRUE(stub_->Offer(&context, request, &reply).ok());
    return reply;
  }

  // Pieces as [from, to) of these bytes, in this order, in one call.
  v1::OfferReply submit(const std::string& key, const std::string& bytes,
                        const std::vector<std::pair<size_t, size_t>>& pieces) {
    grpc::ClientContext context;
    context.AddMetadata(kNameHeader, name_);
    v1::OfferReply reply;
    const auto writer = stub_->Submit(&context, &reply);
    for (const auto& [from, to] : pieces) {
      v1::Chunk chunk;
      chunk.set_key(key);
      chunk.set_offset(static_cast<int64_t>(from));
      chunk.set_data(bytes.substr(from, to - from));
      if (!writer->Write(chunk)) break;
    }
    writer->WritesDone();
    EXPECT_TRUE(writer->Finish().ok());
    return reply;
  }

 private:
  std::string name_;
  std::unique_ptr<v1::Federation::Stub> stub_;
};

TEST_F(Replays, TheOrderOfMessagesIsTheServersToDecide) {
  const SealedUpload upload = kept(work(0, task_of(0)), folder_.path());
  const std::string bytes = read_file(upload.file);
  const size_t size = bytes.size();
  const size_t half = size / 2;
  Disorderly client(service_.port(), "home-0");
  EXPECT_EQ(client.submit(upload.key, bytes, {{0, size}}).verdict(), v1::OfferReply::LATE)
      << "bytes before their offer";
  SealedUpload early = upload;
  early.round = 2;
  early.key = plan_.upload_key(0, 2);
  EXPECT_EQ(client.offer(early).verdict(), v1::OfferReply::LATE) << "a round that is not open yet";
  EXPECT_EQ(clients_[0]->join(plan_.hash()).seen_round, 0) << "nothing of it is remembered";

  EXPECT_EQ(client.offer(upload).verdict(), v1::OfferReply::SEND);
  v1::OfferReply reply = client.submit(upload.key, bytes, {{half, size}, {0, half}});
  EXPECT_EQ(reply.verdict(), v1::OfferReply::SEND) << "the second half before the first";
  EXPECT_EQ(reply.offset(), 0);
  EXPECT_EQ(client.offer(upload).verdict(), v1::OfferReply::SEND);
  reply = client.submit(upload.key, bytes, {{0, half}, {0, half}});
  EXPECT_EQ(reply.offset(), static_cast<int64_t>(half)) << "the first half twice";
  EXPECT_EQ(client.offer(upload).offset(), static_cast<int64_t>(half));
  EXPECT_EQ(client.submit(upload.key, bytes, {{half, size}}).verdict(), v1::OfferReply::STORED);
  EXPECT_EQ(client.submit(upload.key, bytes, {{half, size}}).verdict(), v1::OfferReply::LATE) << "all of it is here";
  EXPECT_EQ(deliver(0, upload), Verdict::kStored);
  stop_ = true;
}

TEST_F(Replays, AnotherUploadForTheSameRoundIsRefused) {
  const SealedUpload upload = kept(work(0, task_of(0)), folder_.path());
  EXPECT_EQ(deliver(0, upload), Verdict::kStored);
  SealedUpload other = upload;
  other.file = folder_ / "other";
  std::string bytes = read_file(upload.file);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_file_atomically(other.file, bytes);
  other.digest = sha256(bytes);
  EXPECT_EQ(deliver(0, other), Verdict::kRefused);
  // Nor can a client send another's.
  const SealedUpload theirs = upload;
  const federation::Answer answer = answer_to(1, theirs);
  EXPECT_EQ(answer.verdict, Verdict::kRefused);
  EXPECT_THAT(answer.reason, ::testing::HasSubstr("another plan, round or client"));
  stop_ = true;
}

TEST_F(Replays, ADifferentPlanIsRefusedAtEveryStep) {
  const federation::FederationPlan other = serve::plan_of(setup_, "deadline = 3\n");
  EXPECT_THROW(clients_[0]->next(other.hash()), UserError) << "the server was replaced while this client worked";
  EXPECT_THROW(clients_[0]->join(other.hash()), UserError);
  SealedUpload upload = work(0, task_of(0));
  upload.key = other.upload_key(0, 1);
  EXPECT_EQ(deliver(0, upload), Verdict::kRefused);
  EXPECT_EQ(task_of(0).kind, Work::Kind::kRound) << "nothing of it was used";
  stop_ = true;
}

}  // namespace
}  // namespace sotto::remote
