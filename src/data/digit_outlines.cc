#include "data/digit_outlines.h"

#include "base/error.h"

#include <ft2build.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include FT_FREETYPE_H
#include FT_OUTLINE_H

namespace sotto::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolders[] = {"/usr/share/fonts/truetype/dejavu", "/usr/share/fonts/dejavu",
                                    "/usr/share/fonts/TTF", "/usr/local/share/fonts/dejavu"};
constexpr const char* kFiles[] = {"DejaVuSans.ttf",       "DejaVuSans-Bold.ttf", "DejaVuSerif.ttf",
                                  "DejaVuSerif-Bold.ttf", "DejaVuSansMono.ttf",  "DejaVuSansMono-Bold.ttf"};
constexpr int kPiecesPerEdge = 3;  // straight edges are cut as well, so that they can bend

struct CloseLibrary {
  void operator()(FT_Library library) const { FT_Done_FreeType(library); }
};
struct CloseFace {
  void operator()(FT_Face face) const { FT_Done_Face(face); }
};
using Library = std::unique_ptr<FT_LibraryRec_, CloseLibrary>;
using Face = std::unique_ptr<FT_FaceRec_, CloseFace>;

fs::path find_font(const char* file) {
  for (const char* folder : kFolders) {
    std::error_code ignored;
    if (fs::path path = fs::path(folder) / file; fs::is_regular_file(path, ignored)) return path;
  }
  fail_user("synthetic-digits needs the font {}: install the package fonts-dejavu-core", file);
}

Face open_face(FT_Library library, const fs::path& path) {
  FT_Face face = nullptr;
  if (FT_New_Face(library, path.c_str(), 0, &face) != 0) {
    fail_user("{}: not a readable font: reinstall the package fonts-dejavu-core", path.string());
  }
  return Face(face);
}

Point to_point(const FT_Vector* vector) {
  return {static_cast<double>(vector->x), -static_cast<double>(vector->y)};
}

Point between(Point a, Point b, double share) {
  return {a.x + share * (b.x - a.x), a.y + share * (b.y - a.y)};
}

template <typename Curve>
int add_pieces(void* outline, const Curve& curve) {
  auto& contour = static_cast<Outline*>(outline)->back();
  const Point from = contour.back();
  for (int i = 1; i <= kPiecesPerEdge; ++i) contour.push_back(curve(from, static_cast<double>(i) / kPiecesPerEdge));
  return 0;
}

int begin_contour(const FT_Vector* to, void* outline) {
  static_cast<Outline*>(outline)->push_back({to_point(to)});
  return 0;
}

int add_line(const FT_Vector* to, void* outline) {
  return add_pieces(outline, [&](Point from, double t) { return between(from, to_point(to), t); });
}

// Bézier curves by de Casteljau's construction.
Point on_curve(Point a, Point b, Point c, double t) {
  return between(between(a, b, t), between(b, c, t), t);
}

int add_conic(const FT_Vector* control, const FT_Vector* to, void* outline) {
  return add_pieces(outline, [&](Point from, double t) { return on_curve(from, to_point(control), to_point(to), t); });
}

int add_cubic(const FT_Vector* first, const FT_Vector* second, const FT_Vector* to, void* outline) {
  return add_pieces(outline, [&](Point from, double t) {
    const Point b = to_point(first);
    const Point c = to_point(second);
    return between(on_curve(from, b, c, t), on_curve(b, c, to_point(to), t), t);
  });
}

void normalise(Outline& outline) {
  constexpr double kFar = std::numeric_limits<double>::max();
  Point low{kFar, kFar};
  Point high{-kFar, -kFar};
  for (const auto& contour : outline) {
    for (const Point& point : contour) {
      low = {std::min(low.x, point.x), std::min(low.y, point.y)};
      high = {std::max(high.x, point.x), std::max(high.y, point.y)};
    }
  }
  const Point centre = between(low, high, 0.5);
  const double height = high.y - low.y;
  for (auto& contour : outline) {
    for (Point& point : contour) point = {(point.x - centre.x) / height, (point.y - centre.y) / height};
  }
}

Outline trace_digit(FT_Face face, int digit, const fs::path& path) {
  const FT_Outline_Funcs trace{begin_contour, add_line, add_conic, add_cubic, 0, 0};
  Outline outline;
  if (FT_Load_Char(face, static_cast<FT_ULong>('0' + digit), FT_LOAD_NO_SCALE) != 0 ||
      FT_Outline_Decompose(&face->glyph->outline, &trace, &outline) != 0 || outline.empty()) {
    fail_user("{}: has no digit {}: reinstall the package fonts-dejavu-core", path.string(), digit);
  }
  normalise(outline);
  return outline;
}

}  // namespace

std::vector<DigitOutlines> load_digit_outlines() {
  FT_Library opened = nullptr;
  SOTTO_INVARIANT(FT_Init_FreeType(&opened) == 0);
  const Library library(opened);
  std::vector<DigitOutlines> typefaces;
  for (const char* file : kFiles) {
    const fs::path path = find_font(file);
    const Face face = open_face(library.get(), path);
    DigitOutlines& digits = typefaces.emplace_back();
    for (int digit = 0; digit < 10; ++digit) digits[static_cast<size_t>(digit)] = trace_digit(face.get(), digit, path);
  }
  return typefaces;
}

}  // namespace sotto::data
