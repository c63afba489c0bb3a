#include "net/tokens.h"

#include "../support/expect_user_error.h"
#include "../support/temp_folder.h"
#include "base/files.h"
#include "net/certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <set>
#include <thread>
#include <vector>

namespace sotto::net {
namespace {

using test::TempFolder;
using ::testing::HasSubstr;
using ::testing::Not;

int64_t tomorrow() {
  return std::time(nullptr) + 86400;
}

TEST(Tokens, AreRandomAndSafeInALine) {
  std::set<std::string> tokens;
  for (int i = 0; i < 200; ++i) {
    const std::string token = make_token();
    EXPECT_EQ(token.size(), 43U);
    EXPECT_EQ(token.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
              std::string::npos)
        << token;
    tokens.insert(token);
  }
  EXPECT_EQ(tokens.size(), 200U);
  EXPECT_EQ(token_digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Tokens, AreTakenOnce) {
  const TempFolder folder;
  const std::string a = add_token(folder.path(), "clinic-a", tomorrow());
  const std::string b = add_token(folder.path(), "clinic-b", tomorrow());
  EXPECT_EQ(name_of_token(folder.path(), a), "clinic-a");
  EXPECT_EQ(take_token(folder.path(), a), "clinic-a");
  EXPECT_THROW(take_token(folder.path(), a), RequestRefused);
  EXPECT_THROW(name_of_token(folder.path(), a), RequestRefused);
  EXPECT_EQ(take_token(folder.path(), b), "clinic-b");
}

TEST(Tokens, AreStoredAsDigestsForTheOwnerAlone) {
  const TempFolder folder;
  const std::string token = add_token(folder.path(), "clinic-a", tomorrow());
  const std::string stored = read_file(folder / "tokens.json");
  EXPECT_THAT(stored, Not(HasSubstr(token)));
  EXPECT_THAT(stored, HasSubstr(token_digest(token)));
  struct stat status {};
  ASSERT_EQ(::stat((folder / "tokens.json").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST(Tokens, UnknownExpiredAndReplacedOnesAreRefusedAlike) {
  const TempFolder folder;
  EXPECT_THROW(take_token(folder.path(), "x"), RequestRefused);
  const std::string expired = add_token(folder.path(), "clinic-a", std::time(nullptr) - 1);
  const std::string replaced = add_token(folder.path(), "clinic-b", tomorrow());
  const std::string good = add_token(folder.path(), "clinic-b", tomorrow());
  std::set<std::string> answers;
  for (const std::string& token : {expired, replaced, token_digest(good), std::string(), make_token()}) {
    try {
      take_token(folder.path(), token);
      ADD_FAILURE() << "taken: " << token;
    } catch (const RequestRefused& refused) {
      answers.insert(refused.what());
    }
  }
  EXPECT_EQ(answers.size(), 1U);
  EXPECT_EQ(take_token(folder.path(), good), "clinic-b");
}

TEST(Tokens, OneOfManyThreadsGetsTheName) {
  const TempFolder folder;
  constexpr int kTokens = 20;
  std::vector<std::string> tokens;
  for (int i = 0; i < kTokens; ++i) {
    tokens.push_back(add_token(folder.path(), "client-" + std::to_string(i), tomorrow()));
  }
  std::atomic<int> taken{0};
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (const std::string& token : tokens) {
        try {
          take_token(folder.path(), token);
          ++taken;
        } catch (const RequestRefused&) {
          ++refused;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken, kTokens);
  EXPECT_EQ(refused, 3 * kTokens);
}

TEST(Tokens, OneOfManyProcessesGetsTheName) {
  const TempFolder folder;
  const std::string token = add_token(folder.path(), "clinic-a", tomorrow());
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        take_token(folder.path(), token);
        ::_exit(0);
      } catch (...) {
        ::_exit(1);
      }
    }
    children.push_back(child);
  }
  int taken = 0;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    taken += WEXITSTATUS(status) == 0 ? 1 : 0;
  }
  EXPECT_EQ(taken, 1);
}

TEST(Tokens, ADamagedFileIsSaidSo) {
  const TempFolder folder;
  for (const char* text : {"", "{", "[]", "{\"tokens\": [1]}", "{\"tokens\": [{\"digest\": 1}]}", "null"}) {
    write_file_atomically(folder / "tokens.json", std::string_view(text));
    EXPECT_USER_ERROR(take_token(folder.path(), "x"), "tokens.json is damaged");
    EXPECT_USER_ERROR(add_token(folder.path(), "clinic-a", tomorrow()), "tokens.json is damaged");
    EXPECT_EQ(read_file(folder / "tokens.json"), text);
  }
  EXPECT_USER_ERROR(add_token(folder / "none", "clinic-a", tomorrow()), "cannot lock");
  EXPECT_USER_ERROR(add_token(folder.path(), "Clinic", tomorrow()), "the name of a client");
}

}  // namespace
}  // namespace sotto::net
