// The owner's table and the schema beside it, as TOML and as JSON.
#include "data/readers/table.h"
#include "data/readers/text_csv.h"
#include "fuzz.h"
#include "io/csv.h"

namespace {

using namespace sotto;

constexpr const char* kToml = R"([[columns]]
name = "age"
kind = "number"
range = [0, 120]
missing = true
fill = 40
[[columns]]
name = "stage"
kind = "category"
values = ["I", "II"]
[[columns]]
name = "outcome"
kind = "label"
values = ["well", "ill"]
)";
constexpr const char* kJson =
    R"({"columns": [{"name": "x", "kind": "number", "range": [-1, 1]}, {"name": "label", "kind": "label", "values": ["0", "1"]}]})";

}  // namespace

std::vector<std::string> fuzz::seeds() {
  const std::string next(kNextFile);
  return {kToml + next + "age,stage,outcome\n50,I,well\n?,II,ill\n", kJson + next + "x,label\n0.5,1\n-0.5,0\n",
          next + "a,b,label\n1,x,0\n2,\"y,z\",1\n", next + "label,text\nx,some words of text\ny,others of them\n"};
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto input = fuzz::parts(fuzz::bytes_of(data, size), 2);
  const fs::path table = fuzz::as_file("table/records.csv", input[1]);
  for (const char* ending : {"toml", "json"}) {
    const fs::path schema = fuzz::as_file(std::string("table/records.schema.") + ending, input[0]);
    fuzz::attempt([&] { data::read_table(table, "records"); });
    fs::remove(schema);
  }
  fuzz::attempt([&] { data::read_table(table, "records", {.declared = {}, .inferred = true}); });
  fuzz::attempt([&] { data::read_header(table); });
  fuzz::attempt([&] { data::is_text_table(io::parse_csv(input[1], "the input")); });
  return fuzz::attempt([&] { data::read_text_csv(table, "records"); });
}
