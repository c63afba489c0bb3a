#include "report/partition_table.h"

#include "base/error.h"
#include "base/table.h"
#include "base/text.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace sotto::report {
namespace {

constexpr size_t kLine = 80;  // of a terminal
constexpr size_t kLongestName = 8, kShortestName = 4;

// The first characters of a UTF-8 string, with an ellipsis if some were cut.
std::string shortened(const std::string& name, size_t longest) {
  if (display_width(name) <= longest) return name;
  size_t end = 0;
  for (size_t characters = 0; end < name.size(); ++end) {
    const bool begins_character = (name[end] & 0xC0) != 0x80;
    if (begins_character && ++characters == longest) break;
  }
  return name.substr(0, end) + "…";
}

class Layout {
 public:
  Layout(const PartitionSummary& summary, int64_t max_classes, size_t longest_name, bool counts_classes)
      : counts_classes_(counts_classes),
        classes_(summary.counts.size(1)),
        shown_(classes_ <= max_classes ? classes_ : max_classes - 1) {
    headers_.emplace_back("client");
    for (int64_t c = 0; c < shown_; ++c)
      headers_.push_back(shortened(summary.class_names[static_cast<size_t>(c)], longest_name));
    if (shown_ < classes_) headers_.push_back(fmt::format("+{} more", classes_ - shown_));
    if (counts_classes_) headers_.emplace_back("classes");
    headers_.emplace_back("records");
  }

  const std::vector<std::string>& headers() const { return headers_; }

  std::vector<std::string> row(std::string name, const at::Tensor& counts) const {
    std::vector<std::string> cells{std::move(name)};
    const auto* count = counts.data_ptr<int64_t>();
    for (int64_t c = 0; c < shown_; ++c) cells.push_back(cell(count[c]));
    if (shown_ < classes_) cells.push_back(cell(counts.slice(0, shown_).sum().item<int64_t>()));
    if (counts_classes_) cells.push_back(std::to_string(at::count_nonzero(counts).item<int64_t>()));
    cells.push_back(std::to_string(counts.sum().item<int64_t>()));
    return cells;
  }

 private:
  static std::string cell(int64_t count) { return count == 0 ? "–" : std::to_string(count); }

  bool counts_classes_;
  int64_t classes_;
  int64_t shown_;
  std::vector<std::string> headers_;
};

}  // namespace

std::string partition_table(const PartitionSummary& summary, int64_t max_rows, int64_t max_classes) {
  SOTTO_INVARIANT(max_rows >= 3 && max_classes >= 2);
  const at::Tensor counts = summary.counts.contiguous();
  const int64_t clients = counts.size(0);
  const bool elided = clients > max_rows;
  const int64_t first = elided ? max_rows - max_rows / 3 : clients;
  const int64_t last = elided ? clients - max_rows / 3 : clients;
  const auto laid_out = [&](size_t longest_name, bool counts_classes) {
    const Layout layout(summary, max_classes, longest_name, counts_classes);
    Table table(layout.headers());
    for (int64_t i = 0; i < first; ++i) table.add_row(layout.row(std::to_string(i), counts[i]));
    if (elided) table.add_row({"…"});
    for (int64_t i = last; i < clients; ++i) table.add_row(layout.row(std::to_string(i), counts[i]));
    table.add_row(layout.row("all", counts.sum(0)));
    return table.to_string();
  };
  const auto fits = [](const std::string& table) { return display_width(table.substr(0, table.find('\n'))) <= kLine; };
  std::string table = laid_out(kLongestName, true);
  for (const bool counts_classes : {true, false}) {
    for (size_t name = kLongestName; name >= kShortestName && !fits(table); --name) {
      table = laid_out(name, counts_classes);
    }
  }
  std::string text = summary.title.empty() ? "" : summary.title + "\n";
  text += table;
  if (clients < summary.clients) text += fmt::format("the first {} of {} clients\n", clients, summary.clients);
  return text;
}

}  // namespace sotto::report
