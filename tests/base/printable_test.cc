#include "base/printable.h"

#include <gtest/gtest.h>

#include <string>

namespace sotto {
namespace {

using namespace std::string_literals;

TEST(Printable, TextFromOutsideIsOneLineThatATerminalOnlyShows) {
  EXPECT_EQ(printable("a line with ε and 中文"), "a line with ε and 中文");
  EXPECT_EQ(printable("two\nlines\r"), "two\\nlines\\x0d");
  EXPECT_EQ(printable("\x1b[31mred\x7f\0"s), "\\x1b[31mred\\x7f\\x00");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m \xc2\xa0"),
            "\\x9b31m \xc2\xa0");
  EXPECT_EQ(printable(""), "");
}

}  // namespace
}  // namespace sotto
