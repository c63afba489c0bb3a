#include "net/key_folders.h"

#include "../support/expect_user_error.h"
#include "../support/temp_folder.h"
#include "base/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <map>

namespace sotto::net {
namespace {

using test::TempFolder;

mode_t mode_of(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 0777U : 0U;
}

std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) files[entry.path().filename()] = read_file(entry.path());
  return files;
}

TEST(KeyFolders, AnAuthorityAndItsServer) {
  const TempFolder temp;
  const fs::path folder = temp / "certs";
  make_authority_folder(folder, "north", {"localhost"}, 30);
  EXPECT_EQ(contents(folder).size(), 4U);
  EXPECT_EQ(mode_of(folder / "authority.key"), 0600U);
  EXPECT_EQ(mode_of(folder / "server.key"), 0600U);
  EXPECT_EQ(hosts(read_server(folder).certificate_pem), std::vector<std::string>{"localhost"});
  EXPECT_EQ(subject(read_authority(folder).certificate_pem), "CN=north");
}

TEST(KeyFolders, NothingIsOverwrittenAndABadHostLeavesNothing) {
  const TempFolder temp;
  EXPECT_USER_ERROR(make_authority_folder(temp / "a", "north", {"no host"}, 30), "neither");
  EXPECT_FALSE(fs::exists(temp / "a"));
  for (const char* file : {"authority.key", "authority.pem", "server.key", "server.pem"}) {
    const fs::path folder = temp / file;
    make_folder(folder);
    write_file_atomically(folder / file, std::string_view("mine"));
    EXPECT_USER_ERROR(make_authority_folder(folder, "north", {"localhost"}, 30), "not overwritten");
    EXPECT_EQ(contents(folder), (std::map<std::string, std::string>{{file, "mine"}}));
  }
  EXPECT_USER_ERROR(read_authority(temp / "b"), "sotto certs init");
}

TEST(KeyFolders, AServerGetsOtherHostsUnderTheSameAuthority) {
  const TempFolder temp;
  make_authority_folder(temp.path(), "north", {"localhost"}, 30);
  const auto before = contents(temp.path());
  EXPECT_USER_ERROR(renew_server(temp.path(), {"no host"}, 30), "neither");
  EXPECT_EQ(contents(temp.path()), before);
  renew_server(temp.path(), {"127.0.0.1"}, 30);
  EXPECT_EQ(hosts(read_server(temp.path()).certificate_pem), std::vector<std::string>{"127.0.0.1"});
  EXPECT_EQ(read_authority(temp.path()).key_pem, before.at("authority.key"));
  EXPECT_NE(read_server(temp.path()).key_pem, before.at("server.key"));
  EXPECT_EQ(mode_of(temp / "server.key"), 0600U);
}

class HomeFolder : public ::testing::Test {
 protected:
  HomeFolder() { make_authority_folder(certs_, "north", {"localhost"}, 30); }
  std::string issue(const std::string& csr) const { return issue_client(read_authority(certs_), csr, "clinic-a", 10); }

  const TempFolder temp_;
  const fs::path certs_ = temp_ / "certs";
  const fs::path home_ = temp_ / "home";
};

TEST_F(HomeFolder, EnrolsByRequestAndCertificate) {
  const std::string csr = make_request_at(home_, "clinic-a");
  EXPECT_EQ(mode_of(home_ / "client.key"), 0600U);
  EXPECT_USER_ERROR(read_identity(home_), "has not enrolled");
  install_certificate(home_, issue(csr), read_authority(certs_).certificate_pem);
  const Identity identity = read_identity(home_);
  EXPECT_EQ(client_name(identity.certificate_pem), "clinic-a");
  check_client(identity.certificate_pem, identity.key_pem, identity.authority_pem);
}

TEST_F(HomeFolder, KeepsItsKeyAndItsName) {
  make_request_at(home_, "clinic-a");
  const std::string key = read_file(home_ / "client.key");
  const std::string csr = make_request_at(home_, "clinic-a");
  EXPECT_EQ(read_file(home_ / "client.key"), key);
  install_certificate(home_, issue(csr), read_authority(certs_).certificate_pem);
  EXPECT_USER_ERROR(make_request_at(home_, "clinic-b"), "is the home of clinic-a");
  EXPECT_EQ(requested_name(make_request_at(home_, "clinic-a")), "clinic-a");
  EXPECT_EQ(read_file(home_ / "client.key"), key);
}

TEST_F(HomeFolder, InstallsNothingThatIsNotItsOwn) {
  const std::string authority = read_authority(certs_).certificate_pem;
  EXPECT_USER_ERROR(install_certificate(home_, issue(make_request("clinic-a").csr_pem), authority), "--request");
  const std::string csr = make_request_at(home_, "clinic-a");
  const auto before = contents(home_);
  EXPECT_USER_ERROR(install_certificate(home_, issue(make_request("clinic-a").csr_pem), authority), "another key");
  EXPECT_USER_ERROR(install_certificate(home_, "nonsense", authority), "no certificate");
  EXPECT_USER_ERROR(install_certificate(home_, issue(csr), make_authority("north", 30).certificate_pem),
                    "this authority");
  EXPECT_EQ(contents(home_), before);
}

TEST_F(HomeFolder, StaysWithItsAuthority) {
  const std::string csr = make_request_at(home_, "clinic-a");
  install_certificate(home_, issue(csr), read_authority(certs_).certificate_pem);
  const auto before = contents(home_);
  const KeyPair other = make_authority("north", 30);
  EXPECT_USER_ERROR(install_certificate(home_, issue_client(other, csr, "clinic-a", 10), other.certificate_pem),
                    "another authority");
  EXPECT_EQ(contents(home_), before);
  install_certificate(home_, issue(csr), read_authority(certs_).certificate_pem);  // a renewal
  EXPECT_NE(contents(home_), before);
}

}  // namespace
}  // namespace sotto::net
