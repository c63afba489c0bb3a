#include "data/synthetic_digits.h"

#include "base/error.h"
#include "base/parallel.h"
#include "base/random.h"
#include "data/digit_outlines.h"

#include <ATen/ATen.h>

#include <cairo.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <string>

namespace sotto::data {
namespace {

constexpr int kSide = 32;
constexpr int64_t kClasses = 10;
constexpr int64_t kBlock = 256;             // images per unit of parallel work
constexpr double kLeastContrast = 0.35;     // between the brightness of digit and background
constexpr double kTurn = std::numbers::pi;  // radians

struct Colour {
  double red;
  double green;
  double blue;

  double brightness() const { return 0.299 * red + 0.587 * green + 0.114 * blue; }
};

Colour random_colour(RandomStream& stream) {
  return {stream.uniform(), stream.uniform(), stream.uniform()};
}

Colour near(const Colour& colour, double distance, RandomStream& stream) {
  const auto shifted = [&](double value) { return std::clamp(value + stream.uniform(-distance, distance), 0.0, 1.0); };
  return {shifted(colour.red), shifted(colour.green), shifted(colour.blue)};
}

Colour contrasting(const Colour& background, RandomStream& stream) {
  while (true) {
    const Colour colour = random_colour(stream);
    if (std::abs(colour.brightness() - background.brightness()) >= kLeastContrast) return colour;
  }
}

Point anywhere(RandomStream& stream) {
  return {stream.uniform(0.0, kSide), stream.uniform(0.0, kSide)};
}

// A random map of the unit-high digit to pixels: an affine map, then a smooth wave that bends it.
class Warp {
 public:
  Warp(Point centre, double height, RandomStream& stream) : centre_(centre), height_(height) {
    const double turn = stream.uniform(-0.09, 0.09) * kTurn;
    cosine_ = std::cos(turn);
    sine_ = std::sin(turn);
    shear_ = stream.uniform(-0.3, 0.3);
    stretch_ = stream.uniform(0.8, 1.25);
    for (Wave& wave : waves_) {
      wave = {stream.uniform(2.0, 7.0), stream.uniform(2.0, 7.0), stream.uniform(0.0, 2.0 * kTurn),
              stream.uniform(-0.05, 0.05), stream.uniform(-0.05, 0.05)};
    }
  }

  Point operator()(Point p) const {
    Point bent = p;
    for (const Wave& wave : waves_) {
      const double swing = std::sin(wave.along_x * p.x + wave.along_y * p.y + wave.phase);
      bent.x += wave.push_x * swing;
      bent.y += wave.push_y * swing;
    }
    const double x = (bent.x + shear_ * bent.y) * stretch_;
    return {centre_.x + height_ * (cosine_ * x - sine_ * bent.y), centre_.y + height_ * (sine_ * x + cosine_ * bent.y)};
  }

 private:
  struct Wave {
    double along_x, along_y, phase, push_x, push_y;
  };
  Point centre_;
  double height_;
  double cosine_;
  double sine_;
  double shear_;
  double stretch_;
  Wave waves_[2];
};

// Draws one image after the other on a surface of its own; one per thread.
class Painter {
 public:
  explicit Painter(const std::vector<DigitOutlines>& typefaces)
      : typefaces_(typefaces),
        surface_(cairo_image_surface_create(CAIRO_FORMAT_RGB24, kSide, kSide)),
        context_(cairo_create(surface_.get())) {}

  // Planes of red, green and blue, each kSide × kSide.
  void paint(int64_t digit, RandomStream& stream, uint8_t* planes) {
    const Colour background = random_colour(stream);
    const Colour ink = contrasting(background, stream);
    fill_background(background, stream);
    draw_clutter(background, stream);
    draw_neighbours(near(ink, 0.15, stream), stream);
    const Point centre{kSide / 2.0 + stream.uniform(-2.5, 2.5), kSide / 2.0 + stream.uniform(-2.0, 2.0)};
    draw_digit(digit, centre, stream.uniform(17.0, 26.0), ink, stream);
    copy_pixels(stream, planes);
  }

 private:
  struct Free {
    void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
    void operator()(cairo_t* context) const { cairo_destroy(context); }
    void operator()(cairo_pattern_t* pattern) const { cairo_pattern_destroy(pattern); }
  };

  void set_colour(const Colour& colour) { cairo_set_source_rgb(context_.get(), colour.red, colour.green, colour.blue); }

  void fill_background(const Colour& colour, RandomStream& stream) {
    const double angle = stream.uniform(0.0, 2.0 * kTurn);
    const double dx = kSide / 2.0 * std::cos(angle);
    const double dy = kSide / 2.0 * std::sin(angle);
    const double middle = kSide / 2.0;
    const std::unique_ptr<cairo_pattern_t, Free> gradient(
        cairo_pattern_create_linear(middle - dx, middle - dy, middle + dx, middle + dy));
    for (const double end : {0.0, 1.0}) {
      const Colour shade = near(colour, 0.15, stream);
      cairo_pattern_add_color_stop_rgb(gradient.get(), end, shade.red, shade.green, shade.blue);
    }
    cairo_set_source(context_.get(), gradient.get());
    cairo_paint(context_.get());
  }

  // Lines and discs of the background's own tones: they disturb without hiding the digit, which is drawn over them.
  void draw_clutter(const Colour& background, RandomStream& stream) {
    for (uint64_t i = stream.below(5); i > 0; --i) {
      set_colour(near(background, 0.2, stream));
      const Point at = anywhere(stream);
      if (stream.bernoulli(0.5)) {
        cairo_arc(context_.get(), at.x, at.y, stream.uniform(1.5, 8.0), 0.0, 2.0 * kTurn);
        cairo_fill(context_.get());
      } else {
        cairo_move_to(context_.get(), at.x, at.y);
        const Point end = anywhere(stream);
        cairo_line_to(context_.get(), end.x, end.y);
        cairo_set_line_width(context_.get(), stream.uniform(0.7, 2.5));
        cairo_stroke(context_.get());
      }
    }
  }

  // Other digits that reach in from the left or the right, as in a house number.
  void draw_neighbours(const Colour& ink, RandomStream& stream) {
    for (const double side : {-1.0, 1.0}) {
      if (!stream.bernoulli(0.3)) continue;
      const Point centre{kSide / 2.0 + side * stream.uniform(17.0, 21.0), kSide / 2.0 + stream.uniform(-4.0, 4.0)};
      const auto digit = static_cast<int64_t>(stream.below(kClasses));
      draw_digit(digit, centre, stream.uniform(15.0, 22.0), ink, stream);
    }
  }

  void draw_digit(int64_t digit, Point centre, double height, const Colour& ink, RandomStream& stream) {
    const Warp warp(centre, height, stream);
    for (const auto& contour : typefaces_[stream.below(typefaces_.size())][static_cast<size_t>(digit)]) {
      for (const Point& point : contour) {
        const Point to = warp(point);
        cairo_line_to(context_.get(), to.x, to.y);
      }
      cairo_close_path(context_.get());
      cairo_new_sub_path(context_.get());
    }
    set_colour(ink);
    cairo_set_line_width(context_.get(), stream.uniform(0.6, 1.5));
    const bool hollow = stream.bernoulli(0.08);
    if (!hollow) cairo_fill_preserve(context_.get());
    if (hollow || stream.bernoulli(0.6)) cairo_stroke_preserve(context_.get());
    cairo_new_path(context_.get());
  }

  void copy_pixels(RandomStream& stream, uint8_t* planes) {
    cairo_surface_flush(surface_.get());
    const unsigned char* pixels = cairo_image_surface_get_data(surface_.get());
    const int stride = cairo_image_surface_get_stride(surface_.get());
    const auto grain = static_cast<int>(stream.below(13));  // largest change of a value
    for (int y = 0; y < kSide; ++y) {
      for (int x = 0; x < kSide; ++x) {
        const auto* pixel = reinterpret_cast<const uint32_t*>(pixels + y * stride) + x;  // 0x00RRGGBB
        uint64_t noise = stream();
        for (int channel = 0; channel < 3; ++channel, noise >>= 16) {
          const int value = static_cast<int>(*pixel >> (16 - 8 * channel)) & 0xFF;
          const int change = static_cast<int>(noise & 0xFFFF) % (2 * grain + 1) - grain;
          planes[(channel * kSide + y) * kSide + x] = static_cast<uint8_t>(std::clamp(value + change, 0, 255));
        }
      }
    }
  }

  const std::vector<DigitOutlines>& typefaces_;
  std::unique_ptr<cairo_surface_t, Free> surface_;
  std::unique_ptr<cairo_t, Free> context_;
};

Records draw_records(int64_t count, const std::vector<DigitOutlines>& typefaces, uint64_t seed,
                     const std::string& split) {
  Records records;
  records.x = at::empty({count, 3, kSide, kSide}, at::kByte);
  records.y = at::empty({count}, at::kLong);
  records.domain = at::zeros({count}, at::kLong);
  auto* pixels = records.x.data_ptr<uint8_t>();
  auto* labels = records.y.data_ptr<int64_t>();
  const int threads = available_threads();
  std::vector<Painter> painters;
  painters.reserve(static_cast<size_t>(threads));
  for (int i = 0; i < threads; ++i) painters.emplace_back(typefaces);
  const auto draw_block = [&](int64_t block, int worker) {
    for (int64_t i = block * kBlock; i < std::min(count, (block + 1) * kBlock); ++i) {
      RandomStream stream(seed, "synthetic-digits-" + split, 0, static_cast<uint64_t>(i));
      labels[i] = i % kClasses;
      painters[static_cast<size_t>(worker)].paint(labels[i], stream, pixels + i * 3 * kSide * kSide);
    }
  };
  parallel_in_order((count + kBlock - 1) / kBlock, threads, draw_block, [](int64_t) {});
  return records;
}

}  // namespace

Dataset synthetic_digits(int64_t train, int64_t test, uint64_t seed) {
  if (train < 1 || test < 0) {
    fail_user("synthetic-digits: cannot draw {} training and {} test images: ask for at least 1 and 0", train, test);
  }
  const auto typefaces = load_digit_outlines();
  Dataset dataset;
  dataset.name = "synthetic-digits";
  dataset.kind = Kind::kImages;
  for (int64_t digit = 0; digit < kClasses; ++digit) dataset.class_names.push_back(std::to_string(digit));
  dataset.domain_names = {dataset.name};
  dataset.train = draw_records(train, typefaces, seed, "train");
  dataset.test = draw_records(test, typefaces, seed, "test");
  return dataset;
}

}  // namespace sotto::data
