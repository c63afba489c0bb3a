// The program as a function: all of its commands, in this process.
#pragma once

#include <string>
#include <vector>

namespace sotto::cli {

// As Program::run.
int run_program(int argc, char** argv);

// What `sotto ARGUMENTS…` prints on standard output, which stays empty. Exceptions of the command come through, and a
// wrong command line is a UserError.
std::string output_of(const std::vector<std::string>& arguments);

}  // namespace sotto::cli
