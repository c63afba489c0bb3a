// sotto bench account: how long the accountants take.
#pragma once

namespace CLI {
class App;
}

namespace sotto::cli {

void add_bench_account(CLI::App& bench);

}  // namespace sotto::cli
