#include "report/page.h"

#include "base/error.h"
#include "report/comparison.h"
#include "report/page_shell.h"
#include "report/run_document.h"

#include <nlohmann/json.hpp>

namespace sotto::report {
namespace {

using nlohmann::json;

constexpr std::string_view kDataMark = "__SOTTO_DATA__";

}  // namespace

json page_document(const std::vector<NamedRun>& runs, privacy::GuaranteeCache& cache) {
  std::vector<json> documents;
  std::vector<config::RunSpec> specs;
  for (const NamedRun& run : runs) {
    const artifacts::RunReader reader(run.folder);
    specs.push_back(spec_of(reader));
    documents.push_back(run_document(reader, run.id, cache));
  }
  json comparison = nullptr;
  if (runs.size() > 1) comparison = compare(documents, specs);
  return {{"version", SOTTO_VERSION}, {"runs", std::move(documents)}, {"comparison", std::move(comparison)}};
}

std::string to_text(const json& document) {
  return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string page_html(const json& document) {
  std::string data;
  for (const char c : to_text(document)) {
    if (c == '<') {
      data += "\\u003c";
    } else {
      data += c;
    }
  }
  std::string html(page_shell());
  const size_t mark = html.find(kDataMark);
  SOTTO_INVARIANT(mark != std::string::npos);
  return html.replace(mark, kDataMark.size(), data);
}

}  // namespace sotto::report
