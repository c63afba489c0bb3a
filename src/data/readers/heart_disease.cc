#include "data/readers/heart_disease.h"

#include "base/error.h"
#include "data/readers/table.h"
#include "data/record_ops.h"

#include <ATen/ATen.h>

namespace sotto::data {
namespace {

Column number(const char* name, double low, double high) {
  return {name, ColumnKind::kNumber, low, high, {}, true, false};
}

// A measurement that some hospitals wrote as 0 when it was not taken.
Column number_or_zero(const char* name, double low, double high) {
  return {name, ColumnKind::kNumber, low, high, {}, true, true};
}

Column category(const char* name, std::vector<std::string> values) {
  return {name, ColumnKind::kCategory, -1, 1, std::move(values), true, false};
}

Column always(Column column) {
  column.may_be_missing = false;
  return column;
}

// Ranges are physiological, codes are those of the published documentation.
TableSchema schema() {
  return {{always(number("age", 20, 80)),
           always(number("sex", 0, 1)),
           always(category("chest pain", {"1", "2", "3", "4"})),
           number_or_zero("resting blood pressure", 80, 200),
           number_or_zero("cholesterol", 100, 600),
           number("fasting blood sugar", 0, 1),
           category("resting ECG", {"0", "1", "2"}),
           number("maximum heart rate", 60, 220),
           number("exercise angina", 0, 1),
           number("ST depression", -3, 7),
           category("ST slope", {"1", "2", "3"}),
           number("vessels", 0, 3),
           category("thallium", {"3", "6", "7"}),
           {"disease", ColumnKind::kLabel, -1, 1, {"absent", "present"}, false, false}},
          false};
}

// The diagnosis is 0 for none and 1 … 4 by severity; like everybody else we ask only whether there is one.
void make_binary(std::vector<io::CsvRow>& rows, const std::string& where) {
  for (size_t i = 0; i < rows.size(); ++i) {
    double severity = 0;
    if (rows[i].size() != 14) fail_user("{}, row {}: {} cells where 14 are needed", where, i + 1, rows[i].size());
    if (!io::parse_number(rows[i].back(), severity) || severity < 0 || severity > 4) {
      fail_user("{}, row {}: the diagnosis '{}' is not in 0…4", where, i + 1, rows[i].back());
    }
    rows[i].back() = severity == 0 ? "absent" : "present";
  }
}

}  // namespace

Dataset read_heart_disease(const FileTree& tree, const std::string& name) {
  const TableSchema columns = schema();
  Dataset dataset;
  dataset.name = name;
  dataset.kind = Kind::kFeatures;
  dataset.class_names = columns.columns.back().values;
  std::vector<Records> hospitals;
  for (const char* hospital : {"cleveland", "hungarian", "switzerland", "va"}) {
    const std::string file = tree.find(fmt::format("processed.{}.data", hospital));
    if (file.empty()) continue;
    auto rows = io::parse_csv(tree.read(file), tree.where(file));
    make_binary(rows, tree.where(file));
    hospitals.push_back(encode_table(columns, rows, tree.where(file), 1));
    hospitals.back().domain.fill_(dataset.domains());
    dataset.domain_names.emplace_back(hospital);
  }
  if (hospitals.empty()) fail_user("{} holds no processed.cleveland.data or the like", tree.root().string());
  dataset.train = concat_records(hospitals);
  validate(dataset);
  return dataset;
}

}  // namespace sotto::data
