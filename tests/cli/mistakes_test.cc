// What goes wrong on the first day: each mistake is one line that says what to do, and costs nothing.
#include "operators.h"

namespace sotto {
namespace {

class Mistakes : public Operators {
 protected:
  // A server that waits for two, and a home that could join it.
  void begin() {
    init();
    write_config();
    start_server();
    ASSERT_EQ(sotto(enrolment("north-a", "--token " + token("north-a") + " --authority certs/authority.pem")).exit_code,
              0);
    write_policy("north-a");
  }

  void copy_home(const std::string& name) const {
    fs::copy(folder_ / "north-a", folder_ / name, fs::copy_options::recursive);
  }

  // One line of ours, and none of a library's.
  void expect_refusal(const std::string& arguments, const std::string& expected) const {
    const Result result = sotto(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments << "\n" << result.err;
    EXPECT_THAT(result.err, HasSubstr(expected)) << arguments;
    EXPECT_EQ(error_lines(result.err), 1) << result.err;
    EXPECT_EQ(result.err.find(".cc:"), std::string::npos) << result.err;
  }

  std::string stopped(const std::string& name) const {
    ::kill(std::stoi(file(name + ".pid")), SIGINT);
    wait_for("sotto: stopped", name);
    return file(name + ".err");
  }
};

TEST_F(Mistakes, InAddresses) {
  begin();
  expect_refusal("join north-a --yes --server 127.0.0.1", "write HOST:PORT");
  expect_refusal("join north-a --yes --patience 1 --server 127.0.0.1:1", "nobody listens there");
  expect_refusal("join north-a --yes --patience 1 --server no-such-host.invalid:7443", "no host of this name");
  expect_refusal(fmt::format("join north-a --yes --server 127.0.0.1:{}", enrolment_), "ports of their own");
  expect_refusal(fmt::format("join north-a --yes --patience 1 --server localhost:{}", port_),
                 "not for the host in this address");
  expect_refusal(fmt::format("join north-a --yes --patience 1 --insecure --server 127.0.0.1:{}", port_), "it hangs up");
  expect_refusal(
      fmt::format("enrol north-b --server 127.0.0.1:{} --name north-b --token {} --authority certs/authority.pem",
                  port_, token("north-b")),
      "the port for something else");
  expect_refusal(fmt::format("serve federation.toml --folder other --certs certs --listen 127.0.0.1:{}", port_),
                 "it is in use");
  EXPECT_FALSE(fs::exists(folder_ / "other"));
  expect_refusal("serve federation.toml --folder server --certs certs --listen 127.0.0.1:0", "another process");
  expect_refusal("status nowhere", "there is no folder nowhere");
  EXPECT_EQ(json::parse(sotto("status server --json").out)["members"].size(), 0U) << "nobody got in";
}

TEST_F(Mistakes, InHomes) {
  begin();
  copy_home("renamed");
  write_policy("renamed");
  expect_refusal("join renamed --yes", "server.name is renamed");
  copy_home("keyless");
  fs::remove(folder_ / "keyless/client.key");
  expect_refusal("join keyless --yes", "there is no keyless/client.key");
  copy_home("mixed");
  ASSERT_EQ(sotto("enrol spare --name spare --request spare.csr").exit_code, 0);
  fs::copy_file(folder_ / "spare/client.key", folder_ / "mixed/client.key", fs::copy_options::overwrite_existing);
  expect_refusal("join mixed --yes", "mixed/client.pem");
  copy_home("empty");
  fs::remove(folder_ / "empty/policy.toml");
  expect_refusal("join empty --yes", "has no policy.toml");
  expect_refusal("status empty", "neither the folder of a server");
  write_file_atomically(folder_ / "north-a/policy.toml",
                        std::regex_replace(file("north-a/policy.toml"), std::regex("table.csv"), "tabel.csv"));
  expect_refusal("join north-a --yes", "tabel.csv");
  EXPECT_EQ(json::parse(sotto("status server --json").out)["members"].size(), 0U) << "nobody got in";
}

TEST_F(Mistakes, StoppedAndStartedAgain) {
  begin();
  run_in_background("join north-a --yes --server 127.0.0.1:1", "early");
  wait_for("trying again", "early");
  EXPECT_EQ(error_lines(stopped("early")), 1);

  run_in_background("join north-a --yes", "a");
  wait_for("with this federation", "a");
  while (json::parse(sotto("status server --json").out)["members"].empty()) {
  }
  expect_refusal("join north-a --yes", "in use by another process");
  EXPECT_EQ(json::parse(sotto("status north-a --json").out)["federations"][0]["participations"], 0);
  EXPECT_EQ(error_lines(stopped("a")), 1);
  EXPECT_THAT(sotto("status north-a").out, HasSubstr("ldp-fedavg"));

  ::kill(server_, SIGINT);
  wait_for("\"event\":\"stopped\"");
  EXPECT_THAT(sotto("status server").out, HasSubstr("not running"));
  const Result away = sotto("join north-a --yes --patience 1");
  EXPECT_EQ(away.exit_code, 2);
  EXPECT_THAT(away.err, HasSubstr("the server is not up"));
  EXPECT_THAT(sotto("status north-a").out, HasSubstr("spent       0"));
}

}  // namespace
}  // namespace sotto
