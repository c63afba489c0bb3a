#include "data/readers/schema_template.h"

#include "../../support/expect_user_error.h"
#include "../../support/temp_folder.h"
#include "../make_files.h"
#include "data/readers/table.h"

#include <ATen/ATen.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sotto::data {
namespace {

using namespace sotto::test;
using ::testing::HasSubstr;
using ::testing::Not;

const io::CsvRow kNames{"age", "stage", "id", "domain", "class"};

StatedColumns everything() {
  StatedColumns stated;
  stated.ranges = {"age=0:120.5"};
  stated.values = {"stage=I,II", "domain=north, south", "class=well,\"ill\""};
  stated.ignored = {"id"};
  return stated;
}

TEST(SchemaTemplate, HoldsTheHeadersNamesAndNothingOfTheRecords) {
  const TempFolder folder;
  const auto text_for = [&](const std::string& records) {
    write_bytes(folder / "p.csv", "age,stage,id,domain,class\n" + records);
    return schema_template(stated_schema(read_header(folder / "p.csv"), {}, "p.csv"), "p.csv");
  };
  const std::string text = text_for("31,IV,77,west,dead\n64,II,78,east,alive\n");
  EXPECT_EQ(text, text_for("?,x,y,z,0\n"));
  for (const char* secret : {"31", "64", "IV", "west", "dead"}) EXPECT_THAT(text, Not(HasSubstr(secret)));
  EXPECT_THAT(text, HasSubstr("name = \"age\"\nkind = \"number\"\nrange = []"));
  EXPECT_THAT(text, HasSubstr("name = \"class\"\nkind = \"label\"\nvalues = []"));
  EXPECT_THAT(text, HasSubstr("name = \"domain\"\nkind = \"domain\""));
}

TEST(SchemaTemplate, IsRefusedUntilItIsFilledIn) {
  const TempFolder folder;
  write_bytes(folder / "p.toml", schema_template(stated_schema(kNames, {}, "p.csv"), "p.csv"));
  EXPECT_USER_ERROR(read_schema(folder / "p.toml"), "the range of 'age' is not stated");
  write_bytes(folder / "p.toml", schema_template(stated_schema(kNames, everything(), "p.csv"), "p.csv"));
  const TableSchema schema = read_schema(folder / "p.toml");
  EXPECT_EQ(schema, stated_schema(kNames, everything(), "p.csv"));
  EXPECT_EQ(schema.columns[0].high, 120.5);
  EXPECT_EQ(schema.columns[1].kind, ColumnKind::kCategory);
  EXPECT_EQ(schema.columns[2].kind, ColumnKind::kIgnored);
  EXPECT_EQ(schema.columns[3].values, (std::vector<std::string>{"north", "south"}));
  EXPECT_EQ(schema.columns[4].values, (std::vector<std::string>{"well", "\"ill\""}));
}

TEST(SchemaTemplate, ATemplateThatWasFilledInPartlyGoesOn) {
  const TempFolder folder;
  StatedColumns first;
  first.values = {"stage=I,II"};
  write_bytes(folder / "p.toml", schema_template(stated_schema(kNames, first, "p.csv"), "p.csv"));
  StatedColumns second;
  second.prior = read_unfinished_schema(folder / "p.toml");
  second.ranges = {"age=0:120"};
  second.prior.columns[0].may_be_missing = true;
  second.prior.columns[0].fill = 40;
  const TableSchema schema = stated_schema(kNames, second, "p.csv");
  EXPECT_EQ(schema.columns[1].values, (std::vector<std::string>{"I", "II"}));
  EXPECT_EQ(schema.columns[0].low, 0);
  write_bytes(folder / "p.toml", schema_template(schema, "p.csv"));
  EXPECT_EQ(read_unfinished_schema(folder / "p.toml").columns[0], schema.columns[0]);
}

TEST(SchemaTemplate, BadStatementsAreRefused) {
  const auto with_range = [](const std::string& range) { stated_schema(kNames, {.ranges = {range}}, "p.csv"); };
  const auto with_values = [](const std::string& values) { stated_schema(kNames, {.values = {values}}, "p.csv"); };
  EXPECT_USER_ERROR(with_range("agee=0:1"), "p.csv has no column 'agee' (did you mean 'age'?)");
  EXPECT_USER_ERROR(with_range("age"), "write it as NAME=");
  EXPECT_USER_ERROR(with_range("age=0"), "NAME=LOW:HIGH");
  EXPECT_USER_ERROR(with_range("age=1:1"), "the range is empty");
  EXPECT_USER_ERROR(with_range("class=0:1"), "the column is no number");
  EXPECT_USER_ERROR(with_values("stage="), "write it as NAME=");
  EXPECT_USER_ERROR(stated_schema(kNames, {.ranges = {"age=0:1"}, .values = {"age=a,b"}}, "p.csv"), "cannot be both");
  EXPECT_USER_ERROR(stated_schema(kNames, {.ignored = {"idd"}}, "p.csv"), "no column 'idd'");
}

TEST(SchemaTemplate, ATableWithoutHeaderHasNumberedColumns) {
  const TempFolder folder;
  write_bytes(folder / "p.csv", "1,5,0\n2,6,1\n");
  StatedColumns stated;
  stated.ranges = {"column 1=0:4", "column 2=0:10"};
  stated.values = {"column 3=0,1"};
  const TableSchema schema = stated_schema(read_header(folder / "p.csv"), stated, "p.csv");
  const Dataset dataset = read_table(folder / "p.csv", "made", {.declared = schema});
  EXPECT_TRUE(at::equal(dataset.train.x[0], at::tensor({-0.5F, 0.0F})));
}

}  // namespace
}  // namespace sotto::data
