#include "privacy/release.h"

#include "base/safetensors.h"
#include "privacy/ledger.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <type_traits>

namespace sotto::privacy {
namespace {

// A type "has readable values" if code outside the privacy folder can get at its tensors, which is what sending it
// needs.
template <typename T>
concept HasReadableValues = requires(const T& value) {
  value.values();
};

template <typename T>
concept CanBeWritten = requires(const T& value) {
  write_safetensors("file", {.tensors = value, .metadata = {}});
};

template <typename T>
concept CanBeWrittenThroughValues = requires(const T& value) {
  write_safetensors("file", {.tensors = value.values(), .metadata = {}});
};

static_assert(!HasReadableValues<Contribution>);
static_assert(!CanBeWritten<Contribution>);
static_assert(!CanBeWrittenThroughValues<Contribution>);
static_assert(!std::is_copy_constructible_v<Contribution>);
static_assert(CanBeWrittenThroughValues<Release>);

static_assert(!std::is_constructible_v<Release, NamedTensors, Receipt>);
static_assert(!std::is_constructible_v<Release, Contribution, Receipt>);
static_assert(!std::is_default_constructible_v<Release>);
static_assert(!std::is_constructible_v<Receipt, int64_t>);
static_assert(!std::is_convertible_v<PrivateState, Upload>);
static_assert(!std::is_convertible_v<Contribution, Upload>);

TEST(InTheClear, ReleasesTheValuesAndSaysWhyInTheLedger) {
  Ledger ledger;
  const at::Tensor value = at::arange(4, at::kFloat);
  const Release release =
      in_the_clear(Contribution({{"weight", value}}), {ledger, 3, 7}, "model", "a baseline without privacy");
  EXPECT_TRUE(at::equal(release.values()[0].value, value));
  ASSERT_EQ(ledger.events().size(), 1U);
  EXPECT_EQ(ledger.events()[0], (Event{3, 7, "server", "model", "in-the-clear", "a baseline without privacy"}));
  EXPECT_EQ(ledger.unproven_reasons("server"), (std::vector<std::string>{"a baseline without privacy"}));
  EXPECT_TRUE(ledger.unproven_reasons("clients").empty());
}

}  // namespace
}  // namespace sotto::privacy
