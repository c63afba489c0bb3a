// EXPECT_USER_ERROR(statement, "part of the message"): a UserError of one line that says so.
#pragma once

#include "base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#define EXPECT_USER_ERROR(statement, part)                                              \
  try {                                                                                 \
    statement;                                                                          \
    ADD_FAILURE() << "no UserError; expected one with: " << (part);                     \
  } catch (const ::sotto::UserError& error) {                                           \
    EXPECT_THAT(std::string(error.what()), ::testing::HasSubstr(part));                 \
    EXPECT_THAT(std::string(error.what()), ::testing::Not(::testing::HasSubstr("\n"))); \
  }
