// A ledger's file, damaged.
#include "fuzz.h"
#include "privacy/guarantee.h"
#include "privacy/ledger.h"

namespace {

using namespace sotto;

void write_ledger(const fs::path& file) {
  privacy::Ledger ledger(file, privacy::Ledger::Mode::kWrite);
  privacy::PrivacyTerms terms;
  terms.epsilon = 8;
  terms.delta = 1e-5;
  ledger.agree(terms, privacy::HeldTo::kProven);
  for (int64_t round = 1; round <= 3; ++round) {
    ledger.spend({.round = round,
                  .client = 0,
                  .observer = "server",
                  .what = "model",
                  .mechanism = "gaussian",
                  .noise_scale = 20,
                  .sensitivity = 1,
                  .generator = "secure",
                  .run = "one"});
  }
  ledger.set_note("plan", "{\"client\": 0}");
  ledger.commit();
}

void remove_companions(const fs::path& file) {
  for (const char* ending : {"-wal", "-shm", "-journal"}) fs::remove(file.string() + ending);
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
  const fs::path file = scratch() / "example.sqlite";
  write_ledger(file);
  const std::string bytes = read_file(file);
  return {bytes};
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const fs::path file = fuzz::as_file("ledger.sqlite", fuzz::bytes_of(data, size));
  fuzz::attempt([&] {
    const privacy::Ledger ledger(file, privacy::Ledger::Mode::kRead);
    ledger.verify_chain();
    ledger.events();
    ledger.kinds();
    ledger.tallies("server");
    ledger.spent_since(0, 0, "server");
    ledger.note("plan");
    ledger.run_in_home();
    ledger.link(1);
  });
  remove_companions(file);
  return 0;
}
