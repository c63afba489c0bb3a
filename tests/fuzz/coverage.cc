// What gcc calls at every branch (-fsanitize-coverage=trace-pc), counted in the form that libFuzzer looks at.
#include <array>
#include <cstddef>
#include <cstdint>

extern "C" {
void __sanitizer_cov_8bit_counters_init(uint8_t* begin, uint8_t* end);
void __sanitizer_cov_pcs_init(const uintptr_t* begin, const uintptr_t* end);
void __sanitizer_cov_trace_pc();
// Comparisons of floating-point numbers, which libFuzzer has no use for.
void __sanitizer_cov_trace_cmpf(float, float) {}
void __sanitizer_cov_trace_cmpd(double, double) {}
}

namespace {

constexpr size_t kCounters = 1 << 18;
std::array<uint8_t, kCounters> counters;
std::array<uintptr_t, 2 * kCounters> places;  // libFuzzer wants a pair for each counter; nothing else is known of them

[[gnu::constructor]] void announce() {
  __sanitizer_cov_8bit_counters_init(counters.data(), counters.data() + counters.size());
  __sanitizer_cov_pcs_init(places.data(), places.data() + places.size());
}

}  // namespace

void __sanitizer_cov_trace_pc() {
  const auto place = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  ++counters[(place ^ (place >> 18)) % kCounters];
}
