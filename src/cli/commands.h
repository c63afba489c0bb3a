// One function per subcommand: it adds itself, its options and its callback to the program.
#pragma once

namespace CLI {
class App;
}

namespace sotto::cli {

void add_account(CLI::App& program);
void add_attack(CLI::App& program);
void add_audit(CLI::App& program);
void add_bench(CLI::App& program);
void add_calibrate(CLI::App& program);
void add_data(CLI::App& program);
void add_data_features(CLI::App& data_command);
void add_export(CLI::App& program);
void add_fit(CLI::App& program);
void add_plan(CLI::App& program);
void add_embed(CLI::App& program);
void add_predict(CLI::App& program);
void add_ledger(CLI::App& program);
void add_pretrain(CLI::App& program);
void add_report(CLI::App& program);
void add_run(CLI::App& program);
void add_sweep(CLI::App& program);
void add_ui(CLI::App& program);

}  // namespace sotto::cli
