// Operators at work: enrolment, checks, metrics, logs.
#include "net/certificates.h"
#include "operators.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <signal.h>

#include <chrono>
#include <regex>
#include <thread>

namespace sotto {
namespace {

void* this_tag() {
  static int tag = 0;
  return &tag;
}

// An answer of grpc.health.v1.Health/Check, as bytes.
std::string health(const fs::path& folder, const std::string& home, int port) {
  const auto file = [&](const std::string& name) { return read_file(folder / name); };
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = file("certs/authority.pem");
  if (!home.empty()) {
    options.pem_cert_chain = file(home + "/client.pem");
    options.pem_private_key = file(home + "/client.key");
  }
  grpc::GenericStub stub(grpc::CreateChannel(fmt::format("127.0.0.1:{}", port), grpc::SslCredentials(options)));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  grpc::CompletionQueue queue;
  grpc::ByteBuffer reply;
  grpc::Status status;
  const auto call =
      stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", grpc::ByteBuffer(nullptr, 0), &queue);
  call->StartCall();
  call->Finish(&reply, &status, this_tag());
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  if (!status.ok()) return "refused";
  std::vector<grpc::Slice> slices;
  reply.Dump(&slices);
  std::string bytes;
  for (const grpc::Slice& slice : slices) bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes;
}

TEST_F(Operators, AFederationFromEnrolmentToStatus) {
  init();
  write_config();
  start_server();
  const std::string authority = net::fingerprint(file("certs/authority.pem"));

  // Over the network, by a token that is good once and an authority that is known by either of two ways.
  const std::string first = token("north-a");
  expect_user_error(enrolment("north-a", "--token x --fingerprint " + std::string(64, '0')), "shows no authority");
  expect_user_error(enrolment("north-a", "--token " + token("stranger") + " --fingerprint " + authority), "refuses");
  EXPECT_FALSE(fs::exists(folder_ / "north-a/client.pem"));
  const Result enrolled = sotto(enrolment("north-a", "--token - --fingerprint " + authority), first + "\n");
  ASSERT_EQ(enrolled.exit_code, 0) << enrolled.err;
  EXPECT_THAT(enrolled.out, HasSubstr("enrolled as north-a"));
  EXPECT_EQ(file("north-a/authority.pem"), file("certs/authority.pem"));
  expect_user_error(enrolment("north-a", "--token " + first + " --fingerprint " + authority), "refuses");
  ASSERT_EQ(sotto(enrolment("north-b", "--token " + token("north-b") + " --authority certs/authority.pem")).exit_code,
            0);
  for (const auto& entry : fs::directory_iterator(folder_ / "certs")) {
    EXPECT_EQ(read_file(entry.path()).find(file("north-a/client.key")), std::string::npos) << entry.path();
  }

  EXPECT_EQ(health(folder_, "north-a", port_), "\x08\x01");
  EXPECT_EQ(health(folder_, "", port_), "refused");

  // What check finds, and that it leaves nothing behind.
  write_policy("north-a");
  write_policy("north-b");
  const Result checked = sotto("check north-a --json");
  EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.err;
  const json findings = json::parse(checked.out)["checks"];
  std::vector<std::string> names;
  for (const json& one : findings) names.push_back(one["what"]);
  EXPECT_THAT(names, ::testing::ElementsAre("policy", "certificate", "clock", "server", "disk", "records",
                                            "policy allows it", "budget"));
  EXPECT_FALSE(fs::exists(folder_ / "north-a/ledger.sqlite"));
  EXPECT_EQ(json::parse(sotto("status server --json").out)["members"].size(), 0U);
  write_policy("north-a", 0.1);
  const Result poor = sotto("check north-a");
  EXPECT_EQ(poor.exit_code, 2);
  EXPECT_THAT(poor.out, HasSubstr("budget.epsilon"));
  EXPECT_THAT(poor.err, HasSubstr("1 of 8 checks failed"));
  write_policy("north-a", 4.0, "\"fedavg\"");
  EXPECT_THAT(sotto("check north-a").out, HasSubstr("allow.methods has fedavg"));
  write_policy("north-a");
  EXPECT_THAT(sotto("check north-a --server 127.0.0.1:1").out, HasSubstr("cannot be reached"));

  EXPECT_THAT(sotto("status north-a").out, HasSubstr("no federation was joined"));
  EXPECT_THAT(scrape(), HasSubstr("sotto_members 0"));

  run_in_background("join north-a --yes --log json", "a");
  wait_for("\"event\":\"plan\"", "a");
  const json waiting = json::parse(sotto("status server --json").out);
  EXPECT_EQ(waiting["running"], true);
  EXPECT_EQ(waiting["members"][0]["name"], "north-a");
  EXPECT_EQ(waiting["rounds_done"], 0);
  const json here = member("north-a", [](const json& one) { return one["connected"] == true; });
  EXPECT_EQ(here["connected"], true);
  EXPECT_GT(here["heard"], 0);
  EXPECT_THAT(sotto("status server").out, HasSubstr("1 of 2 places taken, 1 connected"));
  const Result joined = sotto("join north-b --yes --json");
  ASSERT_EQ(joined.exit_code, 0) << joined.err;
  wait_for("\"event\":\"finished\"", "a");
  wait_for("\"event\":\"finished\"");

  // Lines for machines: all of them JSON, and nothing in a client's that its records have a part in.
  for (const char* name : {"server.err", "a.err"}) {
    for (const std::string& line : split(trim(file(name)), '\n')) {
      const json parsed = json::parse(line, nullptr, false);
      ASSERT_TRUE(parsed.is_object()) << line;
      EXPECT_TRUE(parsed.contains("time") && parsed.contains("level") && parsed.contains("event")) << line;
    }
  }
  EXPECT_THAT(file("server.err"), HasSubstr("\"event\":\"round\",\"asked\":2"));
  for (const char* word : {"right", "accuracy", "spent", "records", "message"}) {
    EXPECT_EQ(file("a.err").find(word), std::string::npos) << word << "\n" << file("a.err");
  }

  const json server = json::parse(sotto("status server --json").out);
  EXPECT_EQ(server["rounds_done"], 2);
  EXPECT_EQ(server["finished"], true);
  EXPECT_EQ(server["open_round"], nullptr);
  EXPECT_EQ(server["members"][1]["uploads"], 2);
  EXPECT_GT(server["upload_bytes"].get<int64_t>(), 0);
  EXPECT_GT(server["epsilon"]["spent"].get<double>(), 0);
  EXPECT_LE(server["epsilon"]["spent"].get<double>(), 4.0 * (1 + 1e-9));
  const json home = json::parse(sotto("status north-b --json").out);
  EXPECT_EQ(home["federations"][0]["participations"], 2);
  EXPECT_EQ(home["federations"][0]["plan"], server["plan"]);
  EXPECT_NEAR(home["budget"]["spent"].get<double>(), json::parse(joined.out)["spent_epsilon"].get<double>(), 1e-9);
  EXPECT_NEAR(home["budget"]["left"].get<double>(), 4.0 - home["budget"]["spent"].get<double>(), 1e-9);
  EXPECT_EQ(member("north-a", [](const json& one) { return one["connected"] == false; })["connected"], false)
      << "it has left";
  EXPECT_THAT(sotto("status server").out, HasSubstr("2 of 2 done"));
  EXPECT_THAT(sotto("status north-b").out, HasSubstr("ldp-fedavg"));
}

TEST_F(Operators, ARevokedClientIsShutOutUntilItEnrolsAgain) {
  init();
  write_config();
  start_server();
  const auto enrol = [&](const std::string& home) {
    return sotto(enrolment(home, "--token " + token(home) + " --authority certs/authority.pem")).exit_code;
  };
  for (const std::string home : {"north-a", "north-b"}) {
    ASSERT_EQ(enrol(home), 0);
    write_policy(home);
  }
  run_in_background("join north-a --yes --log json", "a");
  wait_for("\"event\":\"plan\"", "a");
  EXPECT_EQ(member("north-a", [](const json& one) { return one["connected"] == true; })["revoked"], false);
  ASSERT_EQ(std::system(("pkill -KILL -P " + trim(file("a.pid"))).c_str()), 0);

  expect_user_error("certs revoke certs ../north-a", "a-z");
  expect_user_error("certs revoke server north-a", "authority.pem");
  const Result revoked = sotto("certs revoke certs north-a");
  ASSERT_EQ(revoked.exit_code, 0) << revoked.err;
  const Result refused = sotto("join north-a --yes");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("this certificate was revoked"));
  EXPECT_EQ(member("north-a", [](const json& one) { return one["revoked"] == true; })["revoked"], true);
  EXPECT_THAT(sotto("status server").out, HasSubstr("revoked"));

  ASSERT_EQ(enrol("north-a"), 0);
  run_in_background("join north-a --yes --log json", "a");
  const Result other = sotto("join north-b --yes --quiet");
  EXPECT_EQ(other.exit_code, 0) << other.err;
  wait_for("\"event\":\"finished\"");
  const json back = member("north-a", [](const json& one) { return one["uploads"] == 2; });
  EXPECT_EQ(back["client"], 0) << "its old place";
  EXPECT_EQ(back["uploads"], 2);
  EXPECT_EQ(back["revoked"], false);
}

TEST_F(Operators, MetricsCountRoundsAndNameNobody) {
  init();
  write_config(3, 1);
  start_server(60);
  const std::string authority = " --authority certs/authority.pem";
  for (const std::string home : {"north-a", "north-b", "north-c"}) {
    ASSERT_EQ(sotto(enrolment(home, "--token " + token(home) + authority)).exit_code, 0);
    write_policy(home);
  }
  // One joins and is gone: rounds go on without it, and the server waits for it at the end.
  run_in_background("join north-c --yes --log json", "c");
  wait_for("\"event\":\"plan\"", "c");
  ASSERT_EQ(std::system(("pkill -KILL -P " + trim(file("c.pid"))).c_str()), 0);
  run_in_background("join north-a --yes --quiet", "a");
  run_in_background("join north-b --yes --quiet", "b");
  wait_for("\"event\":\"finished\"");
  const std::string scraped = scrape();
  for (const char* line : {"sotto_rounds_done_total 2", "sotto_rounds_planned 2", "sotto_members 3", "sotto_places 3",
                           "sotto_uploads_total 4", "sotto_round_seconds_count 2"}) {
    EXPECT_THAT(scraped, HasSubstr(std::string("\n") + line + "\n"));
  }
  EXPECT_EQ(scraped.find("north-a"), std::string::npos);
}

TEST_F(Operators, LogsForMachinesQuoteNoRecord) {
  init();
  write_config();
  start_server();
  ASSERT_EQ(sotto(enrolment("north-a", "--token " + token("north-a") + " --authority certs/authority.pem")).exit_code,
            0);
  write_policy("north-a");
  write_file_atomically(folder_ / "table.csv", std::string_view("a,b,c,label\n0.1,hush-hush,0.2,1\n"));
  EXPECT_THAT(sotto("join north-a --yes").err, HasSubstr("hush-hush"));
  const Result logged = sotto("join north-a --yes --log json");
  EXPECT_EQ(logged.exit_code, 2);
  EXPECT_EQ(logged.err.find("hush-hush"), std::string::npos) << logged.err;
  EXPECT_EQ(json::parse(split(trim(logged.err), '\n').back())["event"], "failed");
  EXPECT_THAT(sotto("check north-a").out, HasSubstr("hush-hush"));

  ::kill(server_, SIGTERM);
  wait_for("\"event\":\"stopped\"");
}

TEST_F(Operators, CheckLooksAtAServerBeforeItStarts) {
  init();
  write_config();
  const std::string good = "check federation.toml --folder server --certs certs --listen 127.0.0.1:0";
  const Result checked = sotto(good);
  EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.err;
  EXPECT_THAT(checked.out, HasSubstr("will be made"));
  EXPECT_FALSE(fs::exists(folder_ / "server"));
  EXPECT_THAT(sotto("check federation.toml").out, HasSubstr("--certs DIR is missing"));
  write("plain.toml", "");
  EXPECT_THAT(sotto("check plain.toml --certs certs").out, HasSubstr("has no [declared]"));
  start_server();
  const Result beside =
      sotto(fmt::format("check federation.toml --folder server --certs certs --listen 127.0.0.1:{}", port_));
  EXPECT_EQ(beside.exit_code, 2);
  EXPECT_THAT(beside.out, HasSubstr("a server is running in"));
  EXPECT_THAT(beside.out, HasSubstr("it is in use"));
}

TEST_F(Operators, StatusAndEnrolSayWhatTheyNeed) {
  expect_user_error("status .", "neither the folder of a server");
  expect_user_error("enrol home --server 127.0.0.1:1 --name a", "--name and --token");
  expect_user_error("enrol home --server 127.0.0.1:1 --name a --token x", "--authority FILE or --fingerprint");
  expect_user_error("enrol home --server 127.0.0.1:1 --name a --token x --fingerprint abc", "64 of 0-9 and a-f");
  expect_user_error("enrol home --token x", "go with --server");
  expect_user_error("enrol home --server nowhere --name a --token x --fingerprint " + std::string(64, 'a'),
                    "HOST:PORT");
  expect_user_error("enrol home --server 127.0.0.1:1 --name a --token x --fingerprint " + std::string(64, 'a'),
                    "cannot be reached");
  EXPECT_FALSE(fs::exists(folder_ / "home"));
}

}  // namespace
}  // namespace sotto
