#include "data/readers/table.h"

#include "../../support/expect_user_error.h"
#include "../../support/temp_folder.h"
#include "../make_files.h"
#include "base/files.h"
#include "data/readers/heart_disease.h"
#include "data/readers/optdigits.h"

#include <ATen/ATen.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace sotto::data {
namespace {

using namespace sotto::test;
using Names = std::vector<std::string>;

constexpr const char* kSchema = R"({"columns": [
  {"name": "age", "kind": "number", "range": [0, 100], "missing": true},
  {"name": "stage", "kind": "category", "values": ["I", "II"], "missing": true},
  {"name": "id", "kind": "ignored"},
  {"name": "site", "kind": "domain", "values": ["north", "south"]},
  {"name": "outcome", "kind": "label", "values": ["well", "ill"]}]})";

void expect_row(const Dataset& dataset, int64_t row, const std::vector<float>& values) {
  EXPECT_TRUE(at::allclose(dataset.train.x[row], at::tensor(values), 0, 1e-5)) << row << "\n" << dataset.train.x[row];
}

TEST(Table, ASchemaFixesTheEncoding) {
  const TempFolder folder;
  write_bytes(folder / "p.schema.json", kSchema);
  write_bytes(folder / "p.csv",
              "age,stage,id,site,outcome\n75,II,x1,south,ill\n?,,x2,north,well\n500,I,x3,north,well\n");
  const Dataset dataset = read_table(folder / "p.csv", "made");
  EXPECT_EQ(dataset.class_names, (Names{"well", "ill"}));
  EXPECT_EQ(dataset.domain_names, (Names{"north", "south"}));
  expect_row(dataset, 0, {0.5F, 0, 0, 1, 0});
  expect_row(dataset, 1, {0, 1, 0, 0, 1});
  expect_row(dataset, 2, {1, 0, 1, 0, 0});
  EXPECT_TRUE(at::equal(dataset.train.y, at::tensor({1, 0, 0}, at::kLong)));
  EXPECT_TRUE(at::equal(dataset.train.domain, at::tensor({1, 0, 0}, at::kLong)));
}

TEST(Table, ASchemaFindsReorderedColumnsAndTakesTablesWithoutHeader) {
  const TempFolder folder;
  write_bytes(folder / "p.schema.json", kSchema);
  write_bytes(folder / "p.csv", "outcome,age,stage,id,site\nill,75,II,x1,south\n");
  const Dataset reordered = read_table(folder / "p.csv", "made");
  write_bytes(folder / "p.csv", "75,II,x1,south,ill\n");
  const Dataset bare = read_table(folder / "p.csv", "made");
  EXPECT_EQ(reordered.train.y.item<int64_t>(), 1);
  EXPECT_TRUE(at::equal(reordered.train.x, bare.train.x));
}

TEST(Table, ARecordIsEncodedAlikeWhateverTheOthersAre) {
  const TempFolder folder;
  write_bytes(folder / "p.schema.json", kSchema);
  write_bytes(folder / "p.csv", "40,I,a,north,ill\n");
  const Dataset alone = read_table(folder / "p.csv", "made");
  write_bytes(folder / "p.csv", "40,I,a,north,ill\n99,II,b,south,well\n?,?,c,south,well\n");
  EXPECT_TRUE(at::equal(read_table(folder / "p.csv", "made").train.x[0], alone.train.x[0]));
}

TEST(Table, ViolationsOfTheSchemaNameTheRow) {
  const TempFolder folder;
  write_bytes(folder / "p.schema.json", kSchema);
  const auto expect = [&](const std::string& row, const std::string& part) {
    write_bytes(folder / "p.csv", "age,stage,id,site,outcome\n1,I,a,north,ill\n" + row + "\n");
    EXPECT_USER_ERROR(read_table(folder / "p.csv", "made"), part);
  };
  expect("old,I,a,north,ill", "row 3: 'old' is no number in column 'age'");
  expect("1,IV,a,north,ill", "row 3: 'IV' is no value of column 'stage'");
  expect("1,I,a,west,ill", "row 3: 'west' is no value of column 'site'");
  expect("1,I,a,north,?", "row 3: '?' is no value of column 'outcome'");
  expect("1,I,a,north", "row 3: 4 cells");
}

TEST(Table, BadSchemasAreRefused) {
  const TempFolder folder;
  write_bytes(folder / "p.csv", "1,2\n");
  const auto expect = [&](const std::string& columns, const std::string& part) {
    write_bytes(folder / "p.schema.json", R"({"columns": [)" + columns + "]}");
    EXPECT_USER_ERROR(read_table(folder / "p.csv", "made"), part);
  };
  const std::string label = R"({"name": "y", "kind": "label", "values": ["0", "1"]})";
  expect(R"({"name": "a", "kind": "number", "range": [0, 1]})", "exactly one column must be the label");
  expect(label, "nothing to learn from");
  expect(label + R"(,{"name": "a", "kind": "number", "range": [1, 1]})", "range of 'a' is empty");
  expect(label + R"(,{"name": "a", "kind": "colour"})", "must be one of number, category, label, domain, ignored");
  expect(label + R"(,{"name": "a", "kind": "category", "values": []})", "'a' has no values");
  expect(label + R"(,{"name": "a", "kind": "number"})", "the range of 'a' is not stated");
  expect(label + R"(,{"name": "a", "kind": "number", "range": []})", "the range of 'a' is not stated");
  expect(label + R"(,{"name": "a", "kind": "number", "range": [1]})", "column 'a' must be [low, high]");
  expect(label + R"(,{"name": "a", "kind": "number", "range": [0, 1], "rnge": 1})", "rnge is not a known key");
  expect(label + R"(,{"name": "a", "kind": "number", "range": [0, 1], "fill": 0})", "add missing = true");
  expect(label + R"(,{"name": "a", "kind": "number", "range": [0, 1], "missing": true, "fill": 2})",
         "outside its range");
  expect(label + R"(,{"name": "a", "kind": "category", "values": ["x"], "missing": true, "fill": "z"})",
         "which is none of its values");
  expect(label + R"(,{"name": "a", "kind": "category", "values": ["x", "x"]})", "names a value twice");
  expect(label + R"(,{"name": "a", "kind": "number", "range": [0, 1]},{"name": "a", "kind": "ignored"})",
         "two columns are called 'a'");
  write_bytes(folder / "p.schema.json", "{");
  EXPECT_USER_ERROR(read_table(folder / "p.csv", "made"), "not a table schema");
}

TEST(Table, AFillStandsInForWhatIsMissing) {
  const TempFolder folder;
  write_bytes(folder / "p.schema.toml", R"(
[[columns]]
name = "age"
kind = "number"
range = [0, 100]
missing = true
fill = 25
[[columns]]
name = "stage"
kind = "category"
values = ["I", "II"]
missing = true
fill = "II"
[[columns]]
name = "outcome"
kind = "label"
values = ["well", "ill"]
)");
  write_bytes(folder / "p.csv", "age,stage,outcome\n?,?,ill\n25,II,ill\n");
  const Dataset dataset = read_table(folder / "p.csv", "made");
  EXPECT_FALSE(dataset.schema_inferred);
  expect_row(dataset, 0, {-0.5F, 1, 0, 1, 1});
  expect_row(dataset, 1, {-0.5F, 0, 0, 1, 0});
}

// Two hospitals in one table. One record of the south becomes an outlier: what the north's records look like must not
// tell. Under a declared schema it does not; an inferred one gives it away, which is why it proves nothing.
TEST(Table, AnOutlierOfOneClientMovesAnotherOnlyUnderAnInferredSchema) {
  const TempFolder folder;
  const TableSchema declared{{{"age", ColumnKind::kNumber, 0, 100, {}, true, false},
                              {"stage", ColumnKind::kCategory, -1, 1, {"I", "II", "III"}, true, false},
                              {"site", ColumnKind::kDomain, -1, 1, {"north", "south"}, false, false},
                              {"outcome", ColumnKind::kLabel, -1, 1, {"well", "ill"}, false, false}},
                             false};
  const auto north = [&](const std::string& last, const SchemaChoice& choice) {
    write_bytes(folder / "p.csv", "age,stage,site,outcome\n40,I,north,ill\n60,II,north,well\n50,I,south,well\n" + last);
    const Dataset dataset = read_table(folder / "p.csv", "made", choice);
    EXPECT_EQ(dataset.schema_inferred, !choice.declared.has_value());
    return dataset.train.x.narrow(0, 0, 2).clone();
  };
  const std::string ordinary = "45,II,south,ill\n";
  for (const char* outlier : {"1e9,I,south,ill\n", "-7,II,south,well\n", "?,II,south,ill\n", "45,III,south,ill\n"}) {
    const SchemaChoice by_config{.declared = declared};
    EXPECT_TRUE(at::equal(north(ordinary, by_config), north(outlier, by_config))) << outlier;
    EXPECT_FALSE(at::equal(north(ordinary, {}), north(outlier, {}))) << outlier;
  }
}

TEST(Table, ThatASchemaIsInferredMayBeSaidInSoManyWords) {
  const TempFolder folder;
  write_bytes(folder / "p.schema.json", kSchema);
  write_bytes(folder / "p.csv", "age,stage,id,site,outcome\n75,II,x1,south,ill\n25,I,x2,north,well\n");
  EXPECT_FALSE(read_table(folder / "p.csv", "made").schema_inferred);
  EXPECT_TRUE(read_table(folder / "p.csv", "made", {.inferred = true}).schema_inferred);
}

TEST(Table, InfersKindsAndStandardises) {
  const TempFolder folder;
  write_bytes(folder / "t.csv", "size,colour,class,domain\n1,red,b,x\n3,blue,a,y\n,red,b,x\n");
  const Dataset dataset = read_table(folder / "t.csv", "made");
  EXPECT_EQ(dataset.class_names, (Names{"a", "b"}));
  EXPECT_EQ(dataset.domain_names, (Names{"x", "y"}));
  expect_row(dataset, 0, {-1, 0, 0, 1});
  expect_row(dataset, 1, {1, 0, 1, 0});
  expect_row(dataset, 2, {0, 1, 0, 1});
}

TEST(Table, ANumberThatIsNotFiniteDoesNotMakeItsColumnWords) {
  for (const char* bad : {"inf", "-Infinity", "1e400", "+INF"}) {
    const test::TempFolder folder;
    write_file_atomically(folder / "t.csv", fmt::format("a,b,label\n1,2,x\n3,{},y\n5,6,x\n", bad));
    EXPECT_USER_ERROR(read_table(folder / "t.csv", "t", {}),
                      fmt::format("t.csv, row 3: '{}' in column 'b' is not a finite number", bad));
  }
  const test::TempFolder folder;
  write_file_atomically(folder / "words.csv", "a,b,label\n1,inf,x\n3,sup,y\n5,inf,x\n");
  EXPECT_EQ(read_table(folder / "words.csv", "t", {}).record_shape(), std::vector<int64_t>{3});
}

TEST(Table, NamesThatAreNotUtf8AreRefused) {
  const test::TempFolder folder;
  write_file_atomically(folder / "t.csv",
                        "a,label\n1,caf\xe9"
                        "\n3,tea\n");
  EXPECT_USER_ERROR(read_table(folder / "t.csv", "t", {}), "the name of class 0 is not UTF-8 text");
}

TEST(Table, WithoutHeaderTheLastColumnIsTheLabel) {
  const TempFolder folder;
  write_bytes(folder / "t.csv", "1,5,10\n2,5,2\n");
  const Dataset dataset = read_table(folder / "t.csv", "made");
  EXPECT_EQ(dataset.class_names, (Names{"2", "10"}));
  EXPECT_EQ(dataset.train.x.size(1), 2);
  EXPECT_EQ(dataset.train.x[0][1].item<float>(), 0);
}

TEST(Table, TrainAndTestFilesShareTheEncoding) {
  const TempFolder folder;
  write_bytes(folder / "train.csv", "v,kind,label\n0,a,no\n2,b,yes\n");
  write_bytes(folder / "test.csv", "v,kind,label\n4,c,yes\n");
  const Dataset dataset = read_table(folder.path(), "made");
  EXPECT_TRUE(at::equal(dataset.test.x[0], at::tensor({3.0F, 0.0F, 0.0F})));
  write_bytes(folder / "test.csv", "v,kind,label\n4,c,maybe\n");
  EXPECT_USER_ERROR(read_table(folder.path(), "made"), "row 2: 'maybe' is no value");
}

TEST(Table, RefusesTablesOneCannotLearnFrom) {
  const TempFolder folder;
  std::string ids = "name,label\n";
  for (int i = 0; i < 1500; ++i) ids += "person" + std::to_string(i) + ",1\n";
  write_bytes(folder / "t.csv", ids);
  EXPECT_USER_ERROR(read_table(folder / "t.csv", "made"), "'name' has 1500 different values");
  write_bytes(folder / "t.csv", "a,label\n");
  EXPECT_USER_ERROR(read_table(folder / "t.csv", "made"), "no records");
  write_bytes(folder / "t.csv", "label\nx\n");
  EXPECT_USER_ERROR(read_table(folder / "t.csv", "made"), "nothing to learn from");
}

TEST(HeartDisease, HospitalsAreDomainsAndScalingIsPublic) {
  const TempFolder folder;
  write_bytes(folder / "processed.cleveland.data", "50.0,1.0,1.0,140.0,233.0,1.0,2.0,140.0,0.0,2.0,3.0,0.0,6.0,0\n");
  write_bytes(folder / "processed.va.data", "20,0,4,0,?,?,?,60,0,?,?,?,?,3\n50,1,1,140,233,1,2,140,0,2,3,0,6,0\n");
  const Dataset dataset = read_heart_disease(FileTree::open(folder.path()), "heart-disease");
  EXPECT_EQ(dataset.domain_names, (Names{"cleveland", "va"}));
  EXPECT_TRUE(at::equal(dataset.train.y, at::tensor({0, 1, 0}, at::kLong)));
  EXPECT_TRUE(at::equal(dataset.train.domain, at::tensor({0, 1, 1}, at::kLong)));
  // "1.0" and "1" are the same, and no other record changes the encoding.
  EXPECT_TRUE(at::equal(dataset.train.x[0], dataset.train.x[2]));
  EXPECT_FLOAT_EQ(dataset.train.x[0][0].item<float>(), 0);
  // A blood pressure of 0 was not measured.
  EXPECT_FLOAT_EQ(dataset.train.x[1][6].item<float>(), 0);
  EXPECT_FLOAT_EQ(dataset.train.x[1][7].item<float>(), 1);
  EXPECT_LE(dataset.train.x.abs().max().item<float>(), 1);
}

// What record-level privacy rests on: a record's features are a function of that record alone. Each row in turn becomes
// one with other gaps and with values at and beyond the ends of every range.
TEST(HeartDisease, ARecordChangesNoOtherRecordsFeatures) {
  const Names rows = {"63,1,1,145,233,1,2,150,0,2.3,3,0,6,0", "28,1,2,130,132,0,2,185,0,0,?,?,?,0",
                      "65,1,4,115,0,0,0,93,1,0,2,?,7,1",      "44,0,4,?,218,?,1,115,0,0,?,?,?,1",
                      "60,1,3,0,0,?,0,140,?,?,?,?,?,2",       "51,0,3,110,190,0,0,120,0,0.2,1,2,3,4"};
  const Names others = {"20,0,1,80,100,0,0,60,0,-3,1,0,3,0", "99,1,4,300,900,1,2,260,1,9,3,3,7,4",
                        "50,1,2,?,?,?,?,?,?,?,?,?,?,1"};
  const TempFolder folder;
  const auto features = [&](const Names& cleveland) {
    std::string text;
    for (const std::string& row : cleveland) text += row + "\n";
    write_bytes(folder / "processed.cleveland.data", text);
    return read_heart_disease(FileTree::open(folder.path()), "heart-disease").train.x;
  };
  const at::Tensor before = features(rows);
  for (size_t changed = 0; changed < rows.size(); ++changed) {
    for (const std::string& other : others) {
      Names neighbour = rows;
      neighbour[changed] = other;
      const at::Tensor after = features(neighbour);
      ASSERT_EQ(after.sizes(), before.sizes());
      for (size_t i = 0; i < rows.size(); ++i) {
        const auto row = static_cast<int64_t>(i);
        EXPECT_EQ(at::equal(after[row], before[row]), i != changed) << "row " << i << " when " << changed << " changed";
      }
    }
  }
  // Nor does a record that is not there.
  EXPECT_TRUE(at::equal(features({rows.begin() + 1, rows.end()}), before.narrow(0, 1, before.size(0) - 1)));
}

TEST(HeartDisease, AHospitalsFileChangesNothingInAnothers) {
  const TempFolder folder;
  const auto of_hospital = [&](const std::string& name) {
    const Dataset dataset = read_heart_disease(FileTree::open(folder.path()), "heart-disease");
    const auto domain = std::find(dataset.domain_names.begin(), dataset.domain_names.end(), name);
    return dataset.train.x.index({dataset.train.domain == (domain - dataset.domain_names.begin())}).clone();
  };
  write_bytes(folder / "processed.hungarian.data",
              "28,1,2,130,132,0,2,185,0,0,?,?,?,0\n48,0,3,120,?,1,1,148,0,0,?,?,?,1\n");
  const at::Tensor alone = of_hospital("hungarian");
  write_bytes(folder / "processed.cleveland.data", "63,1,1,145,233,1,2,150,0,2.3,3,0,6,0\n");
  EXPECT_TRUE(at::equal(of_hospital("hungarian"), alone));
  write_bytes(folder / "processed.cleveland.data", "99,0,4,0,900,?,?,?,1,9,?,3,?,4\n80,1,4,?,?,?,?,?,?,?,?,?,?,4\n");
  write_bytes(folder / "processed.switzerland.data", "65,1,4,115,0,0,0,93,1,0,2,?,7,1\n");
  EXPECT_TRUE(at::equal(of_hospital("hungarian"), alone));
}

// The middle of each public range stands in for what is missing, and an indicator says so; the width does not depend
// on which values are missing.
TEST(HeartDisease, MissingValuesAreConstantsWithIndicators) {
  const TempFolder folder;
  write_bytes(folder / "processed.va.data",
              "50,1,1,?,?,0,0,140,0,2,1,0,3,0\n50,1,1,0,0,0,0,140,0,2,1,0,3,0\n50,1,1,140,350,0,0,140,0,2,1,0,3,0\n");
  const Dataset dataset = read_heart_disease(FileTree::open(folder.path()), "heart-disease");
  const at::Tensor x = dataset.train.x;
  EXPECT_EQ(x.size(1), 32);
  EXPECT_TRUE(at::equal(x[0], x[1]));
  EXPECT_EQ((x[0] - x[2]).count_nonzero().item<int64_t>(), 2);
  EXPECT_EQ((x[0] - x[2]).sum().item<float>(), 2);
}

TEST(HeartDisease, RefusesBadRows) {
  const TempFolder folder;
  const auto expect = [&](const std::string& text, const std::string& part) {
    write_bytes(folder / "processed.va.data", text);
    EXPECT_USER_ERROR(read_heart_disease(FileTree::open(folder.path()), "heart-disease"), part);
  };
  expect("50,1,1,140,233,1,2,140,0,2,3,0,6\n", "13 cells where 14");
  expect("50,1,1,140,233,1,2,140,0,2,3,0,6,7\n", "diagnosis '7'");
  expect("50,1,9,140,233,1,2,140,0,2,3,0,6,1\n", "'9' is no value of column 'chest pain'");
  expect("?,1,1,140,233,1,2,140,0,2,3,0,6,1\n", "'age' is missing");
}

TEST(Optdigits, ReadsPixelsOfSixteenLevels) {
  const TempFolder folder;
  std::string row = "16";
  for (int i = 1; i < 64; ++i) row += ",8";
  write_bytes(folder / "digits.csv.gz", gzipped(row + ",7\n"));
  const Dataset dataset = read_optdigits(FileTree::open(folder.path()), "optdigits");
  EXPECT_EQ(dataset.record_shape(), (std::vector<int64_t>{1, 8, 8}));
  EXPECT_EQ(dataset.train.x[0][0][0][0].item<int>(), 255);
  EXPECT_EQ(dataset.train.x[0][0][7][7].item<int>(), 128);
  EXPECT_EQ(dataset.train.y.item<int64_t>(), 7);
  write_bytes(folder / "digits.csv.gz", gzipped("17" + row.substr(2) + ",7\n"));
  EXPECT_USER_ERROR(read_optdigits(FileTree::open(folder.path()), "optdigits"), "row 1: '17'");
}

}  // namespace
}  // namespace sotto::data
