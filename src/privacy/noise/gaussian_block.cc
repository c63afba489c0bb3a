#include "privacy/noise/gaussian_block.h"

#include "base/error.h"
#include "privacy/noise/gaussian_table.h"

#include <openssl/crypto.h>

namespace sotto::privacy {

GaussianBlock::~GaussianBlock() {
  OPENSSL_cleanse(words_.data(), sizeof words_);
  OPENSSL_cleanse(intervals_.data(), sizeof intervals_);
}

void GaussianBlock::draw(size_t count, int log2_scale, NoiseSource& source) {
  SOTTO_INVARIANT(count <= kCapacity && log2_scale >= kMinLog2Scale && log2_scale <= kMaxLog2Scale);
  count_ = count;
  position_bits_ = log2_scale - GaussianTable::kLog2IntervalsPerScale;
  source.words(std::span(words_).first(count), GaussianTable::get().box.data(), intervals_.data());
  const size_t rest = kernels_.find(intervals_.data(), count, GaussianTable::kRest, rest_.data());
  for (size_t i = 0; i < rest; ++i) {
    const Magnitude drawn = rest_sampler_.draw(log2_scale, source);
    intervals_[rest_[i]] = drawn.interval;
    words_[rest_[i]] = uint64_t{drawn.negative} << kSignBit | drawn.position;
  }
}

void GaussianBlock::copy_to(std::span<int64_t> out) const {
  SOTTO_INVARIANT(out.size() == count_);
  kernels_.to_integers(words_.data(), intervals_.data(), count_, position_bits_, out.data());
}

void GaussianBlock::add_to(std::span<float> values, double grid, double inverse) const {
  SOTTO_INVARIANT(values.size() == count_);
  kernels_.add_to_floats(words_.data(), intervals_.data(), count_, {grid, inverse, position_bits_}, values.data());
}

void GaussianBlock::add_to(std::span<double> values, double grid, double inverse) const {
  SOTTO_INVARIANT(values.size() == count_);
  kernels_.add_to_doubles(words_.data(), intervals_.data(), count_, {grid, inverse, position_bits_}, values.data());
}

}  // namespace sotto::privacy
