#include "cli/account_batch.h"

#include "base/error.h"
#include "base/parallel.h"
#include "base/text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <iostream>

namespace sotto::cli {

using nlohmann::json;

void run_batch(const json& refusal, const std::function<json(const json&)>& answer) {
  std::vector<std::string> lines;
  for (std::string line; std::getline(std::cin, line);) {
    if (!trim(line).empty()) lines.push_back(line);
  }
  std::vector<std::string> answers(lines.size());
  const auto refuse = [&](const std::string& reason) {
    json result = refusal;
    result["reason"] = reason;
    return result.dump();
  };
  parallel_in_order(
      static_cast<int64_t>(lines.size()), available_threads(),
      [&](int64_t item, int) {
        const auto i = static_cast<size_t>(item);
        try {
          const json question = json::parse(lines[i], nullptr, false);
          answers[i] = question.is_discarded() ? refuse("this line is not JSON") : answer(question).dump();
        } catch (const UserError& error) {
          answers[i] = refuse(error.what());
        }
      },
      [&](int64_t item) {
        fmt::print("{}\n", answers[static_cast<size_t>(item)]);
        answers[static_cast<size_t>(item)].clear();
      });
  std::fflush(stdout);
}

}  // namespace sotto::cli
