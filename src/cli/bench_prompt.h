// sotto bench prompt: what a private step on prompts costs, in plain steps.
#pragma once

namespace sotto::cli {

class Command;

void add_bench_prompt(Command& bench);

}  // namespace sotto::cli
