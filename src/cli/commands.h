// One function per subcommand: it adds itself, its options and its callback to the program.
#pragma once

namespace sotto::cli {

class Command;

void add_account(Command& program);
void add_advise(Command& program);
void add_attack(Command& program);
void add_audit(Command& program);
void add_bench(Command& program);
void add_calibrate(Command& program);
void add_certs(Command& program);
void add_check(Command& program);
void add_data(Command& program);
void add_data_features(Command& data_command);
void add_enrol(Command& program);
void add_export(Command& program);
void add_fit(Command& program);
void add_model(Command& program);
void add_plan(Command& program);
void add_embed(Command& program);
void add_predict(Command& program);
void add_join(Command& program);
void add_ledger(Command& program);
void add_list(Command& program);
void add_pretrain(Command& program);
void add_prune(Command& program);
void add_report(Command& program);
void add_run(Command& program);
void add_serve(Command& program);
void add_status(Command& program);
void add_sweep(Command& program);
void add_ui(Command& program);

}  // namespace sotto::cli
