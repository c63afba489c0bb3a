// sotto bench account: how long the accountants take.
#pragma once

namespace sotto::cli {

class Command;

void add_bench_account(Command& bench);

}  // namespace sotto::cli
