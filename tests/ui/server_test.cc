#include "ui/server.h"

#include "base/files.h"
#include "run/execute.h"
#include "small_setup.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace sotto::ui {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A folder with one run whose name is long, and the page's server on it.
class Page : public ::testing::Test {
 protected:
  Page() {
    fs::remove_all(folder_);
    const auto setup = federation::small_setup("rounds = 1\n[data]\nclients = 2\n");
    run::execute(setup, {.folder = folder_ / name_, .resume = false, .threads = 1});
    browser_ = std::make_unique<RunBrowser>(folder_);
    server_ = std::make_unique<UiServer>(*browser_, 0);
    const std::string address = server_->address();
    port_ = std::stoi(address.substr(address.rfind(':') + 1));
    token_ = address.substr(address.rfind('=') + 1);
  }
  ~Page() override {
    server_.reset();
    fs::remove_all(folder_);
  }

  int connection() const {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port_));
    EXPECT_EQ(::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return socket;
  }

  // All that the server says to these bytes.
  std::string said_to(const std::string& bytes) const {
    const int socket = connection();
    const timeval patience = {.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    for (size_t sent = 0; sent < bytes.size();) {
      const ssize_t count = ::send(socket, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) break;
      sent += static_cast<size_t>(count);
    }
    std::string said;
    std::array<char, 4096> part = {};
    for (ssize_t count = 0; (count = ::recv(socket, part.data(), part.size(), 0)) > 0;) {
      said.append(part.data(), static_cast<size_t>(count));
    }
    ::close(socket);
    return said;
  }

  std::string request(const std::string& line, const std::string& headers = "", const std::string& body = "") const {
    const std::string query = (line.find('?') == std::string::npos ? "?token=" : "&token=") + token_;
    return fmt::format("{}{} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n{}\r\n{}", line, query, port_, headers, body);
  }

  std::string posted(const std::string& path, const std::string& body) const {
    return request("POST " + path, fmt::format("Content-Length: {}\r\n", body.size()), body);
  }

  const fs::path folder_ = fs::temp_directory_path() / fmt::format("sotto-ui-{}", ::getpid());
  const std::string name_ = std::string(100, 'n');
  std::unique_ptr<RunBrowser> browser_;
  std::unique_ptr<UiServer> server_;
  int port_ = 0;
  std::string token_;
};

TEST_F(Page, ComparesMoreRunsThanAnAddressHasRoomFor) {
  const json question = {{"runs", std::vector<std::string>(150, name_)}, {"have", ""}};
  httplib::Client client("127.0.0.1", port_);
  client.set_read_timeout(60);
  const auto answer = client.Post("/api/document?token=" + token_, question.dump(), "application/json");
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->status, 200) << answer->body;
  const json document = json::parse(answer->body);
  EXPECT_EQ(document["runs"].size(), 150U);
  const json again = {{"runs", question["runs"]}, {"have", document["stamp"]}};
  EXPECT_EQ(client.Post("/api/document?token=" + token_, again.dump(), "application/json")->body, R"({"same":true})");
}

TEST_F(Page, SaysWhatIsWrongWithARequest) {
  const std::string there = posted("/api/document", json{{"runs", {name_}}}.dump());
  EXPECT_THAT(said_to(there), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(said_to(posted("/api/document", json{{"runs", {"../" + name_}}}.dump())), HasSubstr("there is no run"));
  EXPECT_THAT(said_to(posted("/api/document", "{\"runs\": 7}")), HasSubstr("the question is not of the form"));
  EXPECT_THAT(said_to(posted("/api/runs", "")), HasSubstr("there is nothing here"));
  EXPECT_THAT(said_to(request("GET /" + std::string(9000, 'a'))), HasSubstr("the address is too long"));
  for (const std::string& bytes : {std::string("rubbish\r\n\r\n"), std::string(100, '\0') + "\r\n\r\n",
                                   request("GET /api/runs", "X: " + std::string(9000, 'x') + "\r\n")}) {
    EXPECT_THAT(said_to(bytes), StartsWith("HTTP/1.1 400 ")) << bytes.substr(0, 30);
  }
  const std::string stranger = "GET /api/runs?token=0 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
  EXPECT_THAT(said_to(stranger), StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(said_to(there), StartsWith("HTTP/1.1 200 ")) << "it goes on";
}

// They are answered while their bodies are still to come.
TEST_F(Page, RefusesLargeQuestionsUnread) {
  EXPECT_THAT(said_to(request("POST /api/document", "Content-Length: 99000000000\r\n")),
              HasSubstr("a question may have at most"));
  EXPECT_THAT(said_to(request("POST /api/document", "Transfer-Encoding: chunked\r\n")), StartsWith("HTTP/1.1 400 "));
}

TEST_F(Page, AnswersBesideConnectionsThatSayNothing) {
  std::vector<int> silent;
  for (int i = 0; i < 40; ++i) silent.push_back(connection());
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(said_to(request("GET /api/runs")), StartsWith("HTTP/1.1 200 "));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4));
  for (const int socket : silent) ::close(socket);
}

}  // namespace
}  // namespace sotto::ui
