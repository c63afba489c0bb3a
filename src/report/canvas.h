// What pictures are drawn on, and the few colours and sizes they share.
#pragma once

#include <cairo.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace sotto::report {

struct Colour {
  double red = 0, green = 0, blue = 0;
};
inline constexpr Colour kWhite{1.0, 1.0, 1.0};
inline constexpr Colour kInk{0.13, 0.16, 0.20};
inline constexpr Colour kQuiet{0.45, 0.48, 0.52};
inline constexpr Colour kGrid{0.91, 0.92, 0.94};
inline constexpr Colour kDeep{0.09, 0.27, 0.45};

Colour mix(const Colour& a, const Colour& b, double share);

inline constexpr double kMargin = 28.0;
inline constexpr double kSmallText = 11.0;
inline constexpr double kText = 12.0;
inline constexpr double kTitle = 17.0;

enum class Align { kLeft, kCentre, kRight };

struct Position {
  double x = 0, y = 0;
};

struct Stroke {
  double width = 0.5;
  bool dashed = false;
};

// Drawing in units, top left = (0, 0); two pixels to a unit.
class Canvas {
 public:
  Canvas(double width, double height);

  void fill_rectangle(double x, double y, double width, double height, const Colour& colour);
  void fill_disc(double x, double y, double radius, const Colour& colour);
  void circle(double x, double y, double radius, const Colour& colour, const Stroke& stroke = {});
  void line(double x0, double y0, double x1, double y1, const Colour& colour, const Stroke& stroke = {});
  void path(const std::vector<Position>& points, const Colour& colour, const Stroke& stroke = {});

  // (x, y) is the left end, middle or right end of the text's baseline.
  void text(double x, double y, const std::string& words, double size, const Colour& colour, Align align = Align::kLeft,
            bool bold = false);
  // The same, read from bottom to top; (x, y) is the middle of the baseline.
  void upright_text(double x, double y, const std::string& words, double size, const Colour& colour);
  double text_width(const std::string& words, double size, bool bold = false);

  // As PNG, atomically. A full disk or an unwritable folder is a UserError.
  void write(const std::filesystem::path& path) const;

 private:
  struct Free {
    void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
    void operator()(cairo_t* context) const { cairo_destroy(context); }
  };

  void set_colour(const Colour& colour);
  void fill(const Colour& colour);
  void draw(const Colour& colour, const Stroke& stroke);
  void set_font(double size, bool bold);

  std::unique_ptr<cairo_surface_t, Free> surface_;
  std::unique_ptr<cairo_t, Free> context_;
};

}  // namespace sotto::report
