// The MiniLM sentence encoder, entered behind its word table: soft prompts are word vectors that no word has.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sotto::models {

class SentenceEncoder {
 public:
  static constexpr int64_t kLongest = 512;  // tokens of one text

  virtual ~SentenceEncoder() = default;
  // Rows of the word table for int64 ids of any shape.
  virtual at::Tensor word_vectors(const at::Tensor& ids) = 0;
  // Texts as word vectors [S, n, width], of which those count where `present` [S, n] is 1: the mean of the vectors they
  // end up as, scaled to length one, [S, width].
  virtual at::Tensor encode_vectors(const at::Tensor& vectors, const at::Tensor& present) = 0;
};

}  // namespace sotto::models
