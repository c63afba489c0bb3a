// sotto serve, enrol, check, join and status as operators use them: processes, certificates, ports.
#include "net/certificates.h"
#include "program.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <signal.h>

#include <chrono>
#include <regex>
#include <thread>

namespace sotto {
namespace {

constexpr auto kPatience = std::chrono::seconds(60);

class Operators : public Program {
 protected:
  ~Operators() override {
    if (server_ > 0) ::kill(server_, SIGTERM);
  }

  std::string file(const std::string& name) const { return read_file(folder_ / name); }

  void write_config(int places = 2, int deadline = 60) {
    write_file_atomically(folder_ / "federation.toml", fmt::format(R"(rounds = 2
[data]
clients = {}
test_fraction = 0.25
schema = "table.schema.json"
[model]
name = "logistic"
[federation]
batch = 50
lr = 0.5
local_epochs = 1
[method]
name = "ldp-fedavg"
[privacy]
epsilon = 4.0
delta = 1e-5
adjacency = "zero-out"
noise = "secure"
[declared]
records = 200
least_records = 100
[serve]
quorum = 2
deadline = {}
)",
                                                                   places, deadline));
  }

  void write_policy(const std::string& home, double epsilon = 4.0, const std::string& methods = "\"ldp-fedavg\"") {
    fs::create_directories(folder_ / home);
    write_file_atomically(folder_ / home / "policy.toml", fmt::format(R"([data]
name = "custom"
path = "../table.csv"
[budget]
epsilon = {}
delta = 1e-5
adjacency = "zero-out"
[allow]
methods = [{}]
declare = ["records"]
[server]
address = "127.0.0.1:{}"
name = "{}"
)",
                                                                      epsilon, methods, port_, home));
  }

  // A server in the background, whose ports are known once this returns.
  void start_server(int linger = 5) {
    run_in_background(
        fmt::format("serve federation.toml --folder server --certs certs --listen 127.0.0.1:0 --enrol 127.0.0.1:0 "
                    "--metrics 127.0.0.1:0 --log json --linger {}",
                    linger),
        "server");
    server_ = std::stoi(file("server.pid"));
    port_ = wait_for(R"("port":(\d+))");
    enrolment_ = wait_for("enrol on port (\\d+)");
    metrics_ = wait_for("metrics on port (\\d+)");
  }

  void run_in_background(const std::string& arguments, const std::string& name) const {
    const std::string command = fmt::format(
        "cd {0} && {{ SOTTO_DATA= timeout --foreground 120 {1} {2} <stdin >{3}.out 2>{3}.err & echo $! >{3}.pid; }}",
        folder_.string(), SOTTO_PROGRAM, arguments, name);
    for (const std::string& made : {std::string("stdin"), name + ".err"}) {
      write_file_atomically(folder_ / made, std::string_view(""));
    }
    ASSERT_EQ(std::system(command.c_str()), 0);
  }

  int wait_for(const std::string& pattern, const std::string& name = "server") const {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    std::smatch match;
    while (std::chrono::steady_clock::now() < end) {
      const std::string text = file(name + ".err");
      if (std::regex_search(text, match, std::regex(pattern))) return match.size() > 1 ? std::stoi(match[1]) : 1;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    ADD_FAILURE() << "no " << pattern << " in:\n" << file(name + ".err");
    return 0;
  }

  void init() { ASSERT_EQ(sotto("certs init certs --name north --host 127.0.0.1 --days 30").exit_code, 0); }

  std::string token(const std::string& name) const {
    return split(trim(sotto("certs token certs " + name).out), ' ').at(1);
  }

  std::string enrolment(const std::string& home, const std::string& more) const {
    return fmt::format("enrol {0} --server 127.0.0.1:{1} --name {0} {2}", home, enrolment_, more);
  }

  std::string scrape() const {
    const fs::path out = folder_ / "scraped";
    const std::string command = fmt::format(
        "bash -c 'exec 3<>/dev/tcp/127.0.0.1/{}; printf \"GET /metrics HTTP/1.0\\r\\n\\r\\n\" >&3; timeout 10 cat <&3 "
        ">{}'",
        metrics_, out.string());
    EXPECT_EQ(std::system(command.c_str()), 0);
    return read_file(out);
  }

  // An answer of grpc.health.v1.Health/Check, as bytes.
  std::string health(const std::string& home) const {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = file("certs/authority.pem");
    if (!home.empty()) {
      options.pem_cert_chain = file(home + "/client.pem");
      options.pem_private_key = file(home + "/client.key");
    }
    grpc::GenericStub stub(grpc::CreateChannel(fmt::format("127.0.0.1:{}", port_), grpc::SslCredentials(options)));
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
  static void* this_tag() {
    static int tag = 0;
    return &tag;
  }

  pid_t server_ = -1;
  int port_ = 0;
  int enrolment_ = 0;
  int metrics_ = 0;
};

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

  EXPECT_EQ(health("north-a"), "\x08\x01");
  EXPECT_EQ(health(""), "refused");

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
  EXPECT_THAT(sotto("status server").out, HasSubstr("2 of 2 done"));
  EXPECT_THAT(sotto("status north-b").out, HasSubstr("ldp-fedavg"));
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
