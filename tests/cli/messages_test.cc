// What the program says quotes what others wrote, and is one line all the same.
#include "program.h"

#include <algorithm>

namespace sotto {
namespace {

class Messages : public Program {};

TEST_F(Messages, OddNamesAreQuotedHarmlessly) {
  write("odd.toml", "\"two\\nlines \\u001b[31mred\" = 1");
  const Result result = sotto("plan odd.toml");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("two\\nlines \\x1b[31mred is not a known key"));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}

}  // namespace
}  // namespace sotto
