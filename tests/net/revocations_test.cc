#include "net/revocations.h"

#include "../support/expect_user_error.h"
#include "../support/temp_folder.h"
#include "base/files.h"
#include "net/certificates.h"
#include "net/key_folders.h"
#include "net/tokens.h"

#include <gtest/gtest.h>

#include <ctime>

namespace sotto::net {
namespace {

using test::TempFolder;

class RevocationsTest : public ::testing::Test {
 protected:
  RevocationsTest() { make_authority_folder(folder_.path(), "north", {"localhost"}, 30); }

  std::string certificate(const std::string& name) const {
    return issue_client(read_authority(folder_.path()), make_request(name).csr_pem, name, 30);
  }

  TempFolder folder_;
};

TEST_F(RevocationsTest, CoverWhatWasIssuedBeforeAndNothingElse) {
  Revocations revocations(folder_.path());
  const std::string first = certificate("clinic-a");
  const std::string other = certificate("clinic-b");
  EXPECT_FALSE(revocations.covers(first));
  revoke_client(folder_.path(), "clinic-a");
  EXPECT_TRUE(revocations.covers(first)) << "the file is looked at again";
  EXPECT_FALSE(revocations.covers(other));
  const std::string second = certificate("clinic-a");
  EXPECT_FALSE(revocations.covers(second));
  revoke_client(folder_.path(), "clinic-b");
  EXPECT_TRUE(revocations.covers(first));
  EXPECT_TRUE(revocations.covers(other));
  revoke_client(folder_.path(), "clinic-a");
  EXPECT_TRUE(revocations.covers(second));
}

TEST_F(RevocationsTest, TakeTokensAlong) {
  const int64_t tomorrow = std::time(nullptr) + 86400;
  const std::string a = add_token(folder_.path(), "clinic-a", tomorrow);
  const std::string b = add_token(folder_.path(), "clinic-b", tomorrow);
  revoke_client(folder_.path(), "clinic-a");
  EXPECT_THROW(take_token(folder_.path(), a), RequestRefused);
  EXPECT_EQ(take_token(folder_.path(), b), "clinic-b");
}

TEST_F(RevocationsTest, AreNotGuessed) {
  const std::string certificate = this->certificate("clinic-a");
  Revocations revocations(folder_.path());
  write_file_atomically(folder_.path() / "revoked.json", std::string_view("{"));
  EXPECT_THROW(revocations.covers(certificate), UserError);
  EXPECT_THROW(revoke_client(folder_.path(), "clinic-a"), UserError);
  EXPECT_THROW(revoke_client(folder_.path(), "../clinic"), UserError);
  EXPECT_FALSE(Revocations("").covers(certificate));
}

}  // namespace
}  // namespace sotto::net
