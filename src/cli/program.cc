#include "cli/program.h"

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/output.h"

#include <string_view>

namespace sotto::cli {
namespace {

void add_commands(Program& program) {
  program.require_subcommand();
  program.footer("Start here:\n  sotto run examples/1_first_federation.toml");
  add_run(program);
  add_plan(program);
  add_sweep(program);
  add_fit(program);
  add_advise(program);
  add_report(program);
  add_ui(program);
  add_ledger(program);
  add_list(program);
  add_audit(program);
  add_attack(program);
  add_predict(program);
  add_embed(program);
  add_export(program);
  add_data(program);
  add_pretrain(program);
  add_model(program);
  add_account(program);
  add_calibrate(program);
  add_serve(program);
  add_join(program);
  add_check(program);
  add_status(program);
  add_certs(program);
  add_enrol(program);

  add_prune(program);
  add_bench(program);
}

}  // namespace

int run_program(int argc, char** argv) {
  Program program("sotto", "Differentially private personalised federated learning.", SOTTO_VERSION);
  add_commands(program);
  if (argc == 3 && std::string_view(argv[1]) == "--write-help") {  // for the build
    write_file_atomically(argv[2], program.help_source(SOTTO_VERSION));
    return 0;
  }
  return program.run(argc, argv);
}

std::string output_of(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = arguments;
  words.insert(words.begin(), "sotto");
  std::vector<char*> pointers;
  pointers.reserve(words.size());
  for (std::string& word : words) pointers.push_back(word.data());
  const LogLevel level = log_level();
  const CapturedOutput output;
  try {
    run_program(static_cast<int>(pointers.size()), pointers.data());
  } catch (...) {
    set_log_level(level);
    throw;
  }
  set_log_level(level);
  return output.text();
}

}  // namespace sotto::cli
