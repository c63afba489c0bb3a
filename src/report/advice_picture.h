// How recipes compare, as a picture.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace sotto::report {

struct AdviceBar {
  std::string name;
  double value = 0;   // accuracy, 0 to 1
  double spread = 0;  // over seeds; 0: one seed, or none
  bool chosen = false;
  bool alone = false;
};

struct AdviceSummary {
  std::string title;
  std::string subtitle;
  double alone = 0;  // the accuracy that clients reach alone
  std::vector<AdviceBar> bars;
};

// A PNG with one bar for every recipe, whiskers for its spread, and a dashed line where clients alone are. The chosen
// one is dark. Written atomically.
void write_advice_picture(const std::filesystem::path& path, const AdviceSummary& summary);

}  // namespace sotto::report
