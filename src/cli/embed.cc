// sotto embed: what features of held-out records look like, after the first round and after the last.
#include "base/interrupt.h"
#include "base/shell_word.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "run/embedding.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace sotto::cli {
namespace {

struct EmbedOptions {
  std::string run;
  int64_t records = 800;
  OutputOptions output;
};

void embed(const EmbedOptions& options) {
  end_on_interrupt("stopped; nothing was written, and the same command begins again");
  const run::Embedding embedding = run::embed_features(options.run, options.records);
  if (options.output.json) {
    print_json(run::to_json(embedding.pictures));
  } else {
    print_note(fmt::format("{}: two pictures of {} records; sotto report {} -o report.html shows them\n",
                           embedding.file.string(), embedding.pictures.front().x.size(), shell_word(options.run)));
  }
}

}  // namespace

void add_embed(Command& program) {
  auto options = std::make_shared<EmbedOptions>();
  Command command = program.subcommand("embed", "Place features of held-out records in two dimensions, for the report");
  command.option("run", options->run, "A run directory").required();
  command.option("--records", options->records, "At most so many").range(10, 5000).shows_default();
  add_output_options(command, options->output, "Print the pictures as JSON");
  add_example(command, "sotto embed runs/fedproto");
  command.callback([options] { embed(*options); });
}

}  // namespace sotto::cli
