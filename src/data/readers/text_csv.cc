#include "data/readers/text_csv.h"

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

#include <ATen/ATen.h>

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_set>

namespace sotto::data {
namespace {

constexpr std::array<const char*, 6> kTextNames{"text", "content", "sentence", "review", "title", "description"};
constexpr std::array<const char*, 4> kLabelNames{"label", "class", "target", "category"};
constexpr size_t kRowsToLookAt = 100;
constexpr size_t kRunningText = 30;

struct Entry {
  std::string label;
  std::string domain;
  std::string title;  // all text columns but the last
  std::string body;   // the last one

  std::string full() const { return title.empty() ? body : title + " " + body; }
};

template <size_t N>
bool is_one_of(const std::string& cell, const std::array<const char*, N>& names) {
  const std::string lower = to_lower_ascii(cell);
  return std::any_of(names.begin(), names.end(), [&](const char* name) { return lower == name; });
}

bool is_header(const io::CsvRow& row) {
  double number = 0;
  const auto is_number = [&](const std::string& cell) { return io::parse_number(cell, number); };
  const auto names_text = [](const std::string& cell) { return is_one_of(cell, kTextNames); };
  return std::any_of(row.begin(), row.end(), names_text) && std::none_of(row.begin(), row.end(), is_number);
}

bool is_utf8(const std::string& text) {
  const auto* position = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  auto left = static_cast<utf8proc_ssize_t>(text.size());
  while (left > 0) {
    utf8proc_int32_t codepoint = 0;
    const auto used = utf8proc_iterate(position, left, &codepoint);
    if (used <= 0) return false;
    position += used;
    left -= used;
  }
  return true;
}

struct Layout {
  size_t label = 0;
  size_t domain = SIZE_MAX;
  std::vector<size_t> text;
};

Layout layout_of(const io::CsvRow& first, bool header) {
  Layout layout;
  for (size_t c = 0; header && c < first.size(); ++c) {
    if (is_one_of(first[c], kLabelNames)) layout.label = c;
    if (to_lower_ascii(first[c]) == "domain") layout.domain = c;
  }
  for (size_t c = 0; c < first.size(); ++c) {
    if (c != layout.label && c != layout.domain) layout.text.push_back(c);
  }
  return layout;
}

std::vector<Entry> read_entries(const std::string& bytes, const std::string& where) {
  const auto rows = io::parse_csv(bytes, where);
  const bool header = is_header(rows[0]);
  const Layout layout = layout_of(rows[0], header);
  if (layout.text.empty()) fail_user("{} needs at least two columns, a label and a text", where);
  std::vector<Entry> entries;
  for (size_t i = header ? 1 : 0; i < rows.size(); ++i) {
    Entry entry;
    entry.label = rows[i][layout.label];
    if (layout.domain != SIZE_MAX) entry.domain = rows[i][layout.domain];
    io::CsvRow title;
    for (size_t k = 0; k + 1 < layout.text.size(); ++k) title.push_back(rows[i][layout.text[k]]);
    entry.title = trim(join(title, " "));
    entry.body = trim(rows[i][layout.text.back()]);
    if (entry.label.empty()) fail_user("{}, row {}: the label is empty", where, i + 1);
    if (entry.full().empty()) fail_user("{}, row {}: the text is empty", where, i + 1);
    if (!is_utf8(entry.full()))
      fail_user("{}, row {}: the text is not UTF-8; convert the file, e.g. with iconv", where, i + 1);
    entries.push_back(std::move(entry));
  }
  if (entries.empty()) fail_user("{} has a header but no records", where);
  return entries;
}

// Numbers by value, everything else by spelling.
std::vector<std::string> ordered(const std::set<std::string>& values) {
  std::vector<std::string> sorted(values.begin(), values.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const std::string& a, const std::string& b) {
    double x = 0;
    double y = 0;
    return io::parse_number(a, x) && io::parse_number(b, y) && x < y;
  });
  return sorted;
}

std::vector<std::string> values_of(const std::vector<Entry>& entries, std::string Entry::*field) {
  std::set<std::string> values;
  for (const Entry& entry : entries) values.insert(entry.*field);
  return ordered(values);
}

int64_t index_of(const std::vector<std::string>& values, const std::string& value, const char* what,
                 const std::string& where) {
  const auto found = std::find(values.begin(), values.end(), value);
  if (found == values.end()) fail_user("{}: the {} '{}' does not occur in the training file", where, what, value);
  return found - values.begin();
}

struct Names {
  std::vector<std::string> labels;
  std::vector<std::string> domains;
};

Records make_records(const std::vector<Entry>& entries, const Names& names, bool with_titles,
                     const std::string& where) {
  Records records;
  std::vector<int64_t> labels;
  std::vector<int64_t> domains;
  for (const Entry& entry : entries) {
    labels.push_back(index_of(names.labels, entry.label, "label", where));
    domains.push_back(index_of(names.domains, entry.domain, "domain", where));
    records.texts.push_back(with_titles ? entry.full() : entry.body);
  }
  records.y = at::tensor(labels);
  records.domain = at::tensor(domains);
  return records;
}

Dataset assemble(const std::string& name, const Names& names, Records train, Records test) {
  Dataset dataset;
  dataset.name = name;
  dataset.kind = Kind::kText;
  dataset.class_names = names.labels;
  dataset.domain_names = names.domains == std::vector<std::string>{""} ? std::vector<std::string>{name} : names.domains;
  dataset.train = std::move(train);
  dataset.test = std::move(test);
  validate(dataset);
  return dataset;
}

std::vector<Entry> without_known_bodies(const std::vector<Entry>& entries, const std::vector<Entry>& known) {
  std::unordered_set<std::string> bodies;
  for (const Entry& entry : known) bodies.insert(entry.body);
  std::vector<Entry> fresh;
  std::copy_if(entries.begin(), entries.end(), std::back_inserter(fresh),
               [&](const Entry& entry) { return !bodies.contains(entry.body); });
  return fresh;
}

}  // namespace

bool is_text_table(const std::vector<io::CsvRow>& rows) {
  if (is_header(rows[0])) return true;
  const size_t looked_at = std::min(rows.size(), kRowsToLookAt);
  for (size_t c = 0; c < rows[0].size(); ++c) {
    const auto running = std::count_if(
        rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(looked_at),
        [&](const io::CsvRow& row) { return row[c].size() >= kRunningText && row[c].find(' ') != std::string::npos; });
    if (static_cast<size_t>(running) * 2 > looked_at) return true;
  }
  return false;
}

Dataset read_text_csv(const fs::path& path, const std::string& name) {
  const bool is_folder = fs::is_directory(path);
  const fs::path train_path = is_folder ? path / "train.csv" : path;
  const fs::path test_path = path / "test.csv";
  const auto train = read_entries(read_file(train_path), train_path.string());
  const Names names{values_of(train, &Entry::label), values_of(train, &Entry::domain)};
  Records test;
  if (is_folder && fs::exists(test_path)) {
    test = make_records(read_entries(read_file(test_path), test_path.string()), names, true, test_path.string());
  }
  return assemble(name, names, make_records(train, names, true, train_path.string()), std::move(test));
}

Dataset read_ag_news(const FileTree& tree, const std::string& name) {
  const std::string train_file = tree.contains("train.csv") ? "train.csv" : "dev.csv";
  const auto train = read_entries(tree.read(train_file), tree.where(train_file));
  Names names{values_of(train, &Entry::label), {""}};
  std::vector<Entry> test;
  if (tree.contains("test.csv"))
    test = without_known_bodies(read_entries(tree.read("test.csv"), tree.where("test.csv")), train);
  const auto has_title = [](const Entry& entry) { return !entry.title.empty(); };
  const bool with_titles =
      std::any_of(train.begin(), train.end(), has_title) && std::any_of(test.begin(), test.end(), has_title);
  Records train_records = make_records(train, names, with_titles, tree.where(train_file));
  Records test_records = test.empty() ? Records() : make_records(test, names, with_titles, tree.where("test.csv"));
  if (tree.contains("classes.txt")) {
    auto class_names = split(trim(tree.read("classes.txt")), '\n');
    if (class_names.size() != names.labels.size()) {
      fail_user("{} names {} classes, but there are {}", tree.where("classes.txt"), class_names.size(),
                names.labels.size());
    }
    for (size_t i = 0; i < class_names.size(); ++i) names.labels[i] = trim(class_names[i]);
  }
  return assemble(name, names, std::move(train_records), std::move(test_records));
}

}  // namespace sotto::data
