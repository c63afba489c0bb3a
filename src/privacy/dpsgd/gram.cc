#include "privacy/dpsgd/gram.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace sotto::privacy {
namespace {

constexpr double kUnit = 0x1p-53;

// [examples, rows, width] floats → [examples, rows, rows] doubles.
at::Tensor gram(const at::Tensor& vectors) {
  const at::Tensor doubles = vectors.to(at::kDouble);
  return at::bmm(doubles, doubles.transpose(1, 2));
}

// Σ_{p,q} of one example's output Gram matrix times the patches' one.
class PatchProduct {
 public:
  PatchProduct(int64_t height, int64_t width, int64_t out_height, int64_t out_width, const ConvWindow& window)
      : height_(height), width_(width), out_height_(out_height), out_width_(out_width), window_(window) {}

  // pixels [hw, hw], outputs [P, P]; also Σ_p ‖patch p‖‖g_p‖.
  double operator()(const double* pixels, const double* outputs, double* spread) const {
    double sum = 0.0;
    std::vector<double> patch_squares(static_cast<size_t>(out_height_ * out_width_), 0.0);
    for (int64_t ky = 0; ky < window_.kernel; ++ky)
      for (int64_t kx = 0; kx < window_.kernel; ++kx) sum += at_offset(ky, kx, pixels, outputs, patch_squares);
    *spread = 0.0;
    for (int64_t p = 0; p < out_height_ * out_width_; ++p)
      *spread += std::sqrt(patch_squares[static_cast<size_t>(p)] * outputs[p * out_height_ * out_width_ + p]);
    return sum;
  }

 private:
  struct Range {
    int64_t begin, end;
  };

  // Output positions whose tap at offset k lies inside of the image.
  Range inside(int64_t k, int64_t size, int64_t out_size) const {
    const int64_t shift = k - window_.padding;
    const int64_t begin = shift >= 0 ? 0 : (-shift + window_.stride - 1) / window_.stride;
    const int64_t end = size - shift <= 0 ? 0 : (size - shift - 1) / window_.stride + 1;
    return {begin, std::min(end, out_size)};
  }

  double at_offset(int64_t ky, int64_t kx, const double* pixels, const double* outputs,
                   std::vector<double>& patch_squares) const {
    const Range rows = inside(ky, height_, out_height_), columns = inside(kx, width_, out_width_);
    const int64_t hw = height_ * width_, positions = out_height_ * out_width_;
    const auto pixel_at = [&](int64_t y, int64_t x) {
      return (y * window_.stride + ky - window_.padding) * width_ + x * window_.stride + kx - window_.padding;
    };
    double sum = 0.0;
    for (int64_t y = rows.begin; y < rows.end; ++y)
      for (int64_t x = columns.begin; x < columns.end; ++x) {
        const int64_t p = y * out_width_ + x;
        const double* pixel_row = pixels + pixel_at(y, x) * hw;
        const double* output_row = outputs + p * positions;
        patch_squares[static_cast<size_t>(p)] += pixel_row[pixel_at(y, x)];
        for (int64_t v = rows.begin; v < rows.end; ++v) {
          const int64_t from = pixel_at(v, 0);
          const double* weights = output_row + v * out_width_;
          for (int64_t u = columns.begin; u < columns.end; ++u)
            sum += pixel_row[from + u * window_.stride] * weights[u];
        }
      }
    return sum;
  }

  int64_t height_, width_, out_height_, out_width_;
  ConvWindow window_;
};

}  // namespace

double rounded_up(double square, double spread, int64_t terms) {
  return std::max(square, 0.0) + 2.0 * static_cast<double>(terms + 8) * kUnit * spread * spread;
}

std::vector<double> gram_squares(const at::Tensor& a, const at::Tensor& g) {
  const int64_t examples = a.size(0), length = a.size(1);
  const at::Tensor inputs = gram(a), outputs = gram(g);
  const double* in = inputs.data_ptr<double>();
  const double* out = outputs.data_ptr<double>();
  std::vector<double> squares;
  for (int64_t i = 0; i < examples; ++i, in += length * length, out += length * length) {
    double square = 0.0, spread = 0.0;
    for (int64_t j = 0; j < length * length; ++j) square += in[j] * out[j];
    for (int64_t t = 0; t < length; ++t) spread += std::sqrt(in[t * length + t] * out[t * length + t]);
    squares.push_back(rounded_up(square, spread, a.size(2) + g.size(2) + length * length));
  }
  return squares;
}

std::vector<double> conv_gram_squares(const at::Tensor& x, const at::Tensor& g, const ConvWindow& window) {
  const int64_t examples = x.size(0), hw = x.size(2) * x.size(3), positions = g.size(2) * g.size(3);
  const at::Tensor pixels = gram(x.flatten(2).transpose(1, 2)), outputs = gram(g.flatten(2).transpose(1, 2));
  const PatchProduct product(x.size(2), x.size(3), g.size(2), g.size(3), window);
  const int64_t terms = x.size(1) + g.size(1) + positions * positions * window.kernel * window.kernel;
  std::vector<double> squares;
  for (int64_t i = 0; i < examples; ++i) {
    double spread = 0.0;
    const double square = product(pixels.data_ptr<double>() + i * hw * hw,
                                  outputs.data_ptr<double>() + i * positions * positions, &spread);
    squares.push_back(rounded_up(square, spread, terms));
  }
  return squares;
}

}  // namespace sotto::privacy
