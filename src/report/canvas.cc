#include "report/canvas.h"

#include "base/error.h"
#include "base/files.h"

#include <array>
#include <cmath>
#include <numbers>

namespace sotto::report {
namespace {

constexpr double kResolution = 2.0;  // pixels per unit

}  // namespace

Colour mix(const Colour& a, const Colour& b, double share) {
  return {a.red + share * (b.red - a.red), a.green + share * (b.green - a.green), a.blue + share * (b.blue - a.blue)};
}

Canvas::Canvas(double width, double height)
    : surface_(cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(std::ceil(width * kResolution)),
                                          static_cast<int>(std::ceil(height * kResolution)))),
      context_(cairo_create(surface_.get())) {
  cairo_scale(context_.get(), kResolution, kResolution);
  cairo_set_line_join(context_.get(), CAIRO_LINE_JOIN_ROUND);
  fill_rectangle(0.0, 0.0, width, height, kWhite);
}

void Canvas::fill_rectangle(double x, double y, double width, double height, const Colour& colour) {
  cairo_rectangle(context_.get(), x, y, width, height);
  fill(colour);
}

void Canvas::fill_disc(double x, double y, double radius, const Colour& colour) {
  cairo_arc(context_.get(), x, y, radius, 0.0, 2.0 * std::numbers::pi);
  fill(colour);
}

void Canvas::circle(double x, double y, double radius, const Colour& colour, const Stroke& stroke) {
  cairo_arc(context_.get(), x, y, radius, 0.0, 2.0 * std::numbers::pi);
  draw(colour, stroke);
}

void Canvas::line(double x0, double y0, double x1, double y1, const Colour& colour, const Stroke& stroke) {
  path({{x0, y0}, {x1, y1}}, colour, stroke);
}

void Canvas::path(const std::vector<Position>& points, const Colour& colour, const Stroke& stroke) {
  for (const Position& point : points) cairo_line_to(context_.get(), point.x, point.y);
  draw(colour, stroke);
}

void Canvas::text(double x, double y, const std::string& words, double size, const Colour& colour, Align align,
                  bool bold) {
  set_font(size, bold);
  const double width = text_width(words, size, bold);
  const double shift = align == Align::kLeft ? 0.0 : align == Align::kCentre ? width / 2.0 : width;
  set_colour(colour);
  cairo_move_to(context_.get(), x - shift, y);
  cairo_show_text(context_.get(), words.c_str());
  cairo_new_path(context_.get());
}

void Canvas::upright_text(double x, double y, const std::string& words, double size, const Colour& colour) {
  cairo_save(context_.get());
  cairo_translate(context_.get(), x, y);
  cairo_rotate(context_.get(), -std::numbers::pi / 2.0);
  text(0.0, 0.0, words, size, colour, Align::kCentre);
  cairo_restore(context_.get());
}

double Canvas::text_width(const std::string& words, double size, bool bold) {
  set_font(size, bold);
  cairo_text_extents_t extents;
  cairo_text_extents(context_.get(), words.c_str(), &extents);
  return extents.x_advance;
}

void Canvas::write(const fs::path& path) const {
  write_file_atomically(path, [&](const fs::path& temporary) {
    const cairo_status_t status = cairo_surface_write_to_png(surface_.get(), temporary.c_str());
    if (status != CAIRO_STATUS_SUCCESS) {
      fail_user("{}: cannot write the picture: {}", path.string(), cairo_status_to_string(status));
    }
  });
}

void Canvas::set_colour(const Colour& colour) {
  cairo_set_source_rgb(context_.get(), colour.red, colour.green, colour.blue);
}

void Canvas::fill(const Colour& colour) {
  set_colour(colour);
  cairo_fill(context_.get());
}

void Canvas::draw(const Colour& colour, const Stroke& stroke) {
  constexpr std::array<double, 2> kDashes = {5.0, 4.0};
  set_colour(colour);
  cairo_set_line_width(context_.get(), stroke.width);
  cairo_set_dash(context_.get(), kDashes.data(), stroke.dashed ? static_cast<int>(kDashes.size()) : 0, 0.0);
  cairo_stroke(context_.get());
}

void Canvas::set_font(double size, bool bold) {
  cairo_select_font_face(context_.get(), "DejaVu Sans", CAIRO_FONT_SLANT_NORMAL,
                         bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
  cairo_set_font_size(context_.get(), size);
}

}  // namespace sotto::report
