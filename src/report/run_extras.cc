#include "report/run_extras.h"

#include "base/error.h"
#include "base/files.h"
#include "methods/dpsgd/clip_curve.h"
#include "report/spending.h"

#include <nlohmann/json.hpp>
#include <openssl/evp.h>

#include <algorithm>
#include <cmath>

namespace sotto::report {
namespace {

using nlohmann::json;

constexpr int kCurvePoints = 120;

std::string base64(const std::string& bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int length =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(length));
  return text;
}

std::string picture_uri(const fs::path& path) {
  return fmt::format("data:image/png;base64,{}", base64(read_file(path)));
}

json object_in(const fs::path& path) {
  if (!fs::exists(path)) return nullptr;
  json value = json::parse(read_file(path), nullptr, false);
  if (!value.is_object()) fail_user("{} is not a JSON object", path.string());
  return value;
}

// Columns of numbers (or nulls) of one length.
void expect_columns(const json& value, std::initializer_list<const char*> keys, const fs::path& path) {
  size_t length = 0;
  for (const char* key : keys) {
    const json column = value.value(key, json(nullptr));
    const bool numbers = column.is_array() && std::all_of(column.begin(), column.end(), [](const json& entry) {
                           return entry.is_number() || entry.is_null();
                         });
    if (!numbers) fail_user("{}: '{}' is not a list of numbers", path.string(), key);
    if (key != *keys.begin() && column.size() != length) {
      fail_user("{}: '{}' and '{}' differ in length", path.string(), *keys.begin(), key);
    }
    length = column.size();
  }
}

json embedding_in(const fs::path& folder) {
  const fs::path path = folder / "embedding.json";
  if (!fs::exists(path)) return nullptr;
  json value = json::parse(read_file(path), nullptr, false);
  if (value.is_object()) value = json::array({std::move(value)});
  if (!value.is_array()) fail_user("{} is neither a JSON object nor a list of them", path.string());
  for (const json& picture : value) {
    if (!picture.is_object()) fail_user("{}: a picture is not a JSON object", path.string());
    expect_columns(picture, {"x", "y", "label"}, path);
  }
  return value;
}

json audit_in(const fs::path& folder) {
  const fs::path path = folder / "audit.json";
  json value = object_in(path);
  if (value.is_null()) return value;
  const json entries = value.value("entries", json(nullptr));
  if (!entries.is_array()) fail_user("{}: 'entries' is not a list", path.string());
  for (const json& entry : entries) {
    if (!entry.is_object() || !entry.value("audited_epsilon", json(nullptr)).is_number()) {
      fail_user("{}: an entry without a number 'audited_epsilon'", path.string());
    }
  }
  return value;
}

// Only a plain file name beside the JSON file.
std::string picture_beside(const fs::path& file, const json& name) {
  const fs::path picture = name.is_string() ? fs::path(name.get<std::string>()) : fs::path();
  if (picture.empty() || picture != picture.filename() || picture == ".." || picture.extension() != ".png" ||
      !fs::is_regular_file(fs::symlink_status(file.parent_path() / picture))) {
    fail_user("{} names a picture that is not a PNG file beside it: {}", file.string(), name.dump());
  }
  return picture_uri(file.parent_path() / picture);
}

void expect_curve(const json& roc, const fs::path& path) {
  expect_columns(roc, {"false_positive_rate", "true_positive_rate"}, path);
  if (roc.contains("low") || roc.contains("high")) expect_columns(roc, {"false_positive_rate", "low", "high"}, path);
}

json attack_in(const fs::path& path) {
  json value = object_in(path);
  if (!value.contains("name")) value["name"] = path.stem().string();
  for (json* part : {&value, value.contains("baseline") ? &value["baseline"] : nullptr}) {
    if (part == nullptr) continue;
    if (!part->is_object()) fail_user("{}: 'baseline' is not an object", path.string());
    if (part->contains("roc")) expect_curve((*part)["roc"], path);
    if (part->contains("grid")) (*part)["grid"] = picture_beside(path, (*part)["grid"]);
  }
  if (!value.contains("reconstructions")) return value;
  if (!value["reconstructions"].is_array()) fail_user("{}: 'reconstructions' is not a list", path.string());
  for (json& pair : value["reconstructions"]) {
    if (!pair.is_object()) fail_user("{}: a reconstruction that is not an object", path.string());
    for (const char* key : {"original", "reconstructed"}) {
      pair[key] = picture_beside(path, pair.value(key, json(nullptr)));
    }
  }
  return value;
}

json attacks_in(const fs::path& folder) {
  if (!fs::is_directory(folder / "attacks")) return nullptr;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder / "attacks")) {
    if (entry.path().extension() == ".json" && entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  json attacks = json::array();
  for (const fs::path& file : files) attacks.push_back(attack_in(file));
  return attacks.empty() ? json(nullptr) : attacks;
}

// The curve drawn over the range it was fitted on; a little beyond, where it keeps its value.
json curve_in(const config::RunSpec& spec) {
  const json options = json::parse(spec.method_options.empty() ? "{}" : spec.method_options);
  if (!options.contains("curve")) return nullptr;
  const methods::ClipCurve curve = methods::clip_curve_from(options["curve"], "method.curve");
  const double low = curve.knots.empty() ? curve.low : curve.knots.front();
  const double high = curve.knots.empty() ? curve.high : curve.knots.back();
  if (!(low > 0) || !(high > low)) return nullptr;
  json value = {{"curve", options["curve"]}, {"x", json::array()}, {"y", json::array()}, {"budgets", json::array()}};
  const double from = std::log(low / 1.5), to = std::log(high * 1.5);
  for (int i = 0; i <= kCurvePoints; ++i) {
    const double x = std::exp(from + (to - from) * i / kCurvePoints);
    value["x"].push_back(x);
    value["y"].push_back(curve(x));
  }
  if (curve.axis != methods::CurveAxis::kEpsilon || !spec.privacy) return value;
  for (int64_t client = 0; client < std::min(spec.data.clients, kListedClients); ++client) {
    const double budget = spec.privacy->budget_of(client);
    value["budgets"].push_back({{"client", client}, {"x", budget}, {"y", curve(budget)}});
  }
  return value;
}

}  // namespace

json run_extras(const fs::path& folder, const config::RunSpec& spec) {
  json partition = object_in(folder / "partition.json");
  const bool draw = partition.is_null() && fs::exists(folder / "partition.png");
  return {{"environment", object_in(folder / "environment.json")},
          {"partition", std::move(partition)},
          {"picture", draw ? json(picture_uri(folder / "partition.png")) : json(nullptr)},
          {"curve", curve_in(spec)},
          {"audit", audit_in(folder)},
          {"attacks", attacks_in(folder)},
          {"embedding", embedding_in(folder)}};
}

}  // namespace sotto::report
