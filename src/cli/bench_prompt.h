// sotto bench prompt: what a private step on prompts costs, in plain steps.
#pragma once

namespace CLI {
class App;
}

namespace sotto::cli {

void add_bench_prompt(CLI::App& bench);

}  // namespace sotto::cli
