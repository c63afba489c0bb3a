// The precompiled header of the tests: the project's, and GoogleTest.
#pragma once

#include "../../src/precompiled.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
