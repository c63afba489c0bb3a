// sotto certs and sotto enrol, from an empty folder to an enrolled client.
#include "net/certificates.h"
#include "net/tokens.h"
#include "program.h"

#include <sys/stat.h>

#include <ctime>

namespace sotto {
namespace {

class Certs : public Program {
 protected:
  void init() {
    const Result result = sotto("certs init certs --name north --host localhost --host 127.0.0.1 --days 30");
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  std::string file(const std::string& name) const { return read_file(folder_ / name); }
};

TEST_F(Certs, InitMakesAnAuthorityOnce) {
  init();
  const std::string key = file("certs/authority.key");
  expect_user_error("certs init certs --name north --host localhost", "not overwritten");
  EXPECT_EQ(file("certs/authority.key"), key);
  for (const char* name : {"certs/authority.key", "certs/server.key"}) {
    struct stat status {};
    ASSERT_EQ(::stat((folder_ / name).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0600U) << name;
  }
  expect_user_error("certs init other --name North --host localhost", "the name of a federation");
  expect_user_error("certs init other --name north --host 'a b'", "neither a host name nor an IP address");
  expect_user_error("certs init other --name north", "--host is required");
  expect_user_error("certs init other --name north --host localhost --days 0", "--days");
  EXPECT_FALSE(fs::exists(folder_ / "other"));
}

TEST_F(Certs, TheServerGetsOtherHosts) {
  init();
  const std::string authority = file("certs/authority.pem");
  const Result result = sotto("certs server certs --host other.example.org");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(net::hosts(file("certs/server.pem")), ::testing::ElementsAre("other.example.org"));
  EXPECT_EQ(file("certs/authority.pem"), authority);
  expect_user_error("certs server nowhere --host localhost", "sotto certs init");
}

TEST_F(Certs, ShowSaysWhatACertificateSays) {
  init();
  const Result shown = sotto("certs show certs/server.pem");
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("server localhost, 127.0.0.1\n"));
  EXPECT_THAT(shown.out, HasSubstr("UTC"));
  EXPECT_THAT(shown.out, HasSubstr(net::fingerprint(file("certs/server.pem"))));
  const json authority = json::parse(sotto("certs show certs/authority.pem --json").out);
  EXPECT_EQ(authority["authority"], true);
  EXPECT_EQ(authority["subject"], "CN=north");
  EXPECT_EQ(authority["fingerprint"], net::fingerprint(file("certs/authority.pem")));
  EXPECT_GT(authority["not_after"].get<int64_t>(), std::time(nullptr) + 29 * 86400);
  expect_user_error("certs show certs/server.key", "certs/server.key: this is no certificate");
  expect_user_error("certs show nowhere.pem", "nowhere.pem");
}

TEST_F(Certs, TokensAreOneLinePerClient) {
  init();
  const Result result = sotto("certs token certs clinic-b clinic-a");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<std::string> lines = split(trim(result.out), '\n');
  ASSERT_EQ(lines.size(), 2U);
  const std::vector<std::string> words = split(lines[0], ' ');
  ASSERT_EQ(words.size(), 3U);
  EXPECT_EQ(words[0], "clinic-a");
  EXPECT_EQ(words[2], net::fingerprint(file("certs/authority.pem")));
  EXPECT_EQ(net::take_token(folder_ / "certs", words[1]), "clinic-a");
  EXPECT_THROW(net::take_token(folder_ / "certs", words[1]), net::RequestRefused);

  const json made = json::parse(sotto("certs token certs clinic-c --days 2 --json").out);
  EXPECT_NEAR(made[0]["expires"].get<double>(), static_cast<double>(std::time(nullptr) + 2 * 86400), 60);

  const std::string before = file("certs/tokens.json");
  expect_user_error("certs token certs clinic-d 'clinic e'", "the name of a client");
  EXPECT_EQ(file("certs/tokens.json"), before);
  expect_user_error("certs token nowhere clinic-a", "sotto certs init");
}

TEST_F(Certs, AClientEnrolsByFiles) {
  init();
  ASSERT_EQ(sotto("enrol home --name clinic-a --request clinic-a.csr").exit_code, 0);
  expect_user_error("certs issue certs clinic-a.csr --name clinic-b", "asks for the name clinic-a instead of clinic-b");
  EXPECT_FALSE(fs::exists(folder_ / "clinic-a.pem"));
  ASSERT_EQ(sotto("certs issue certs clinic-a.csr --name clinic-a").exit_code, 0);
  expect_user_error("certs issue certs clinic-a.csr --name clinic-a", "not overwritten");

  expect_user_error("enrol stranger --certificate clinic-a.pem --authority certs/authority.pem", "--request");
  expect_user_error("enrol home --certificate certs/server.pem --authority certs/authority.pem", "names no client");
  expect_user_error("enrol home --certificate clinic-a.csr --authority certs/authority.pem",
                    "clinic-a.csr: this is no");
  EXPECT_FALSE(fs::exists(folder_ / "home/client.pem"));

  const Result enrolled = sotto("enrol home --certificate clinic-a.pem --authority certs/authority.pem");
  EXPECT_EQ(enrolled.exit_code, 0) << enrolled.err;
  EXPECT_THAT(enrolled.out, HasSubstr("enrolled as clinic-a"));
  EXPECT_THAT(enrolled.out, HasSubstr(net::fingerprint(file("certs/authority.pem"))));
  net::check_client(file("home/client.pem"), file("home/client.key"), file("home/authority.pem"));
}

TEST_F(Certs, EnrolAsksOrInstallsAndNeverOverwrites) {
  expect_user_error("enrol home", "--name and --request");
  expect_user_error("enrol home --name clinic-a", "--name and --request");
  expect_user_error("enrol home --name clinic-a --request a.csr --certificate x.pem", "--name and --request");
  expect_user_error("enrol home --name Clinic --request a.csr", "the name of a client");
  EXPECT_FALSE(fs::exists(folder_ / "home/client.key"));
  write_file_atomically(folder_ / "a.csr", std::string_view("mine"));
  expect_user_error("enrol home --name clinic-a --request a.csr", "not overwritten");
  EXPECT_EQ(file("a.csr"), "mine");
}

}  // namespace
}  // namespace sotto
