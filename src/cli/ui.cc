// sotto ui: the runs of a folder as a local page that follows them.
#include "base/interrupt.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "ui/server.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <thread>

namespace sotto::cli {
namespace {

struct UiOptions {
  std::string root = "runs";
  int port = 0;
};

void ui(const UiOptions& options) {
  catch_interrupts();
  ui::RunBrowser browser(options.root);
  const ui::UiServer server(browser, options.port);
  fmt::print("{}\nCtrl-C ends it\n", server.address());
  std::fflush(stdout);
  while (!interrupted()) std::this_thread::sleep_for(std::chrono::milliseconds(100));
}

}  // namespace

void add_ui(Command& program) {
  auto options = std::make_shared<UiOptions>();
  Command command =
      program.subcommand("ui", "Show runs and federations on a local page: list, follow, compare, budgets");
  command.option("FOLDER", options->root,
                 "Runs, the folder of a server, a client's home, or a folder of these (default: runs)");
  command.option("--port", options->port, "The port on the loopback interface (default: any that is free)")
      .range(0, 65535);
  add_example(command,
              "sotto ui runs\n"
              "  sotto ui server");
  command.callback([options] { ui(*options); });
}

}  // namespace sotto::cli
