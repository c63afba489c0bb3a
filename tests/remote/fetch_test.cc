// Broadcasts over links that break again and again.
#include "base/error.h"
#include "base/files.h"
#include "remote/client.h"
#include "remote/federation.grpc.pb.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>

namespace sotto::remote {
namespace {

constexpr size_t kAtATime = 1000;

// Sends a thousand bytes from where it is asked, and is gone.
class BreaksOff : public v1::Federation::Service {
 public:
  grpc::Status Fetch(grpc::ServerContext*, const v1::FetchRequest* request,
                     grpc::ServerWriter<v1::Chunk>* writer) override {
    const std::lock_guard lock(mutex);
    offsets.push_back(request->offset());
    const std::string& content = contents.at(request->digest());
    const auto from = static_cast<size_t>(request->offset());
    v1::Chunk chunk;
    chunk.set_offset(request->offset() + misplaced_by);
    chunk.set_data(content.substr(from, kAtATime));
    writer->Write(chunk);
    return from + kAtATime >= content.size() ? grpc::Status::OK : grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone");
  }

  std::string add(const std::string& content) {
    contents[sha256(content)] = content;
    return sha256(content);
  }

  std::mutex mutex;
  std::map<std::string, std::string> contents;
  std::vector<int64_t> offsets;
  int64_t misplaced_by = 0;
};

class BrokenLinks : public ::testing::Test {
 protected:
  BrokenLinks() {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&server_);
    running_ = builder.BuildAndStart();
    client_ = std::make_unique<Client>(fmt::format("127.0.0.1:{}", port), std::nullopt, "home");
  }

  std::string fetch(const std::string& content) {
    return client_->fetch(server_.add(content), static_cast<int64_t>(content.size()));
  }

  BreaksOff server_;
  std::unique_ptr<grpc::Server> running_;
  std::unique_ptr<Client> client_;
};

TEST_F(BrokenLinks, WhatHasArrivedIsNotFetchedAgain) {
  const std::string content(2500, 'x');
  EXPECT_THROW(fetch(content), Unreachable);
  EXPECT_THROW(fetch(content), Unreachable);
  EXPECT_EQ(fetch(content), content);
  EXPECT_THAT(server_.offsets, ::testing::ElementsAre(0, 1000, 2000));
  EXPECT_THROW(fetch(content), Unreachable) << "it is kept until it is whole, and no longer";
}

TEST_F(BrokenLinks, AnotherBroadcastBeginsAtItsBeginning) {
  EXPECT_THROW(fetch(std::string(1500, 'x')), Unreachable);
  const std::string next(1500, 'y');
  EXPECT_THROW(fetch(next), Unreachable);
  EXPECT_EQ(fetch(next), next);
  EXPECT_THAT(server_.offsets, ::testing::ElementsAre(0, 0, 1000));
}

TEST_F(BrokenLinks, BytesFromElsewhereAreThrownAway) {
  const std::string content(1500, 'x');
  server_.misplaced_by = 5;
  EXPECT_THROW(fetch(content), Unreachable);
  server_.misplaced_by = 0;
  EXPECT_THROW(fetch(content), Unreachable);
  EXPECT_EQ(fetch(content), content);
  EXPECT_THAT(server_.offsets, ::testing::ElementsAre(0, 0, 1000));
}

}  // namespace
}  // namespace sotto::remote
