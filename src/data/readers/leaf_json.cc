#include "data/readers/leaf_json.h"

#include "base/error.h"
#include "base/parallel.h"
#include "base/progress.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

namespace sotto::data {
namespace {

constexpr int64_t kPixels = 28 * 28;
constexpr const char* kClasses = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

struct Writer {
  std::string name;
  std::vector<uint8_t> pixels;
  std::vector<int64_t> labels;
};

// Collects user_data while the file is parsed: the files are hundreds of megabytes, far more as a document in memory.
// Depth counts open objects and arrays; inside user_data: 2 = users, 3 = x and y, 4 = x's images or y's labels, 5 =
// pixels.
class LeafHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit LeafHandler(std::string where) : where_(std::move(where)) {}

  std::vector<Writer> take() {
    if (!has_user_data_) fail_user("{} is not a LEAF file: it has no user_data", where_);
    return std::move(writers_);
  }

  bool key(string_t& name) override {
    if (depth_ == 1) in_user_data_ = name == "user_data";
    if (depth_ == 1 && in_user_data_) has_user_data_ = true;
    if (in_user_data_ && depth_ == 2) writers_.push_back({name, {}, {}});
    if (in_user_data_ && depth_ == 3) field_ = name;
    return true;
  }
  bool start_object(size_t) override { return ++depth_, true; }
  bool end_object() override {
    if (in_user_data_ && depth_ == 3) check_writer();
    --depth_;
    return true;
  }
  bool start_array(size_t) override { return ++depth_, true; }
  bool end_array() override {
    --depth_;
    const bool ends_image = in_user_data_ && field_ == "x" && depth_ == 4;
    if (ends_image && writers_.back().pixels.size() % kPixels != 0) {
      fail_user("{}, writer {}: an image does not have {} pixels", where_, writers_.back().name, kPixels);
    }
    return true;
  }
  bool number_integer(number_integer_t value) override { return number(static_cast<double>(value)); }
  bool number_unsigned(number_unsigned_t value) override { return number(static_cast<double>(value)); }
  bool number_float(number_float_t value, const string_t&) override { return number(value); }
  bool null() override { return other(); }
  bool boolean(bool) override { return other(); }
  bool string(string_t&) override { return other(); }
  bool binary(binary_t&) override { return other(); }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    fail_user("{} is truncated or corrupt: no JSON at byte {}", where_, position);
  }

 private:
  bool in_values() const { return in_user_data_ && depth_ >= 4 && (field_ == "x" || field_ == "y"); }

  bool number(double value) {
    if (!in_values()) return true;
    Writer& writer = writers_.back();
    if (field_ == "x") {
      if (!(value >= 0 && value <= 1)) fail_user("{}, writer {}: a pixel is not in 0…1", where_, writer.name);
      writer.pixels.push_back(static_cast<uint8_t>(std::lround(value * 255)));
    } else {
      if (!(value >= 0 && value < 62) || value != std::floor(value)) {
        fail_user("{}, writer {}: {} is no label in 0…61", where_, writer.name, value);
      }
      writer.labels.push_back(static_cast<int64_t>(value));
    }
    return true;
  }

  bool other() const {
    if (in_values())
      fail_user("{}, writer {}: '{}' holds something that is no number", where_, writers_.back().name, field_);
    return true;
  }

  void check_writer() const {
    const Writer& writer = writers_.back();
    if (writer.pixels.size() != writer.labels.size() * kPixels) {
      fail_user("{}, writer {}: {} images but {} labels", where_, writer.name, writer.pixels.size() / kPixels,
                writer.labels.size());
    }
  }

  const std::string where_;
  std::vector<Writer> writers_;
  std::string field_;
  int depth_ = 0;
  bool in_user_data_ = false;
  bool has_user_data_ = false;
};

std::vector<std::string> json_files(const FileTree& tree, const std::string& split) {
  std::vector<std::string> files;
  std::copy_if(tree.files().begin(), tree.files().end(), std::back_inserter(files), [&](const std::string& file) {
    const bool in_split =
        split.empty() || file.starts_with(split + "/") || file.find("/" + split + "/") != std::string::npos;
    return in_split && file.ends_with(".json");
  });
  return files;
}

std::vector<Writer> read_writers(const FileTree& tree, const std::vector<std::string>& files,
                                 const std::string& title) {
  std::vector<std::vector<Writer>> per_file(files.size());
  std::vector<Writer> writers;
  Progress progress(title, static_cast<int64_t>(files.size()));
  parallel_in_order(
      static_cast<int64_t>(files.size()), available_threads(),
      [&](int64_t i, int) {
        const std::string& file = files[static_cast<size_t>(i)];
        LeafHandler handler(tree.where(file));
        nlohmann::json::sax_parse(tree.read_inflated(file), &handler);
        per_file[static_cast<size_t>(i)] = handler.take();
      },
      [&](int64_t i) {
        std::move(per_file[static_cast<size_t>(i)].begin(), per_file[static_cast<size_t>(i)].end(),
                  std::back_inserter(writers));
        per_file[static_cast<size_t>(i)].clear();
        progress.advance();
      });
  return writers;
}

Records make_records(const std::vector<Writer>& writers, std::map<std::string, int64_t>& domains) {
  std::vector<uint8_t> pixels;
  std::vector<int64_t> labels;
  std::vector<int64_t> domain;
  for (const Writer& writer : writers) {
    const int64_t number = domains.emplace(writer.name, static_cast<int64_t>(domains.size())).first->second;
    pixels.insert(pixels.end(), writer.pixels.begin(), writer.pixels.end());
    labels.insert(labels.end(), writer.labels.begin(), writer.labels.end());
    domain.insert(domain.end(), writer.labels.size(), number);
  }
  if (labels.empty()) return {};
  const auto count = static_cast<int64_t>(labels.size());
  return {at::tensor(pixels, at::kByte).view({count, 1, 28, 28}), at::tensor(labels), at::tensor(domain), {}};
}

}  // namespace

bool is_leaf(const FileTree& tree) {
  const auto files = json_files(tree, "");
  if (files.empty()) return false;
  return tree.read(files.front()).find("\"user_data\"") != std::string::npos;
}

Dataset read_leaf(const FileTree& tree, const std::string& name) {
  auto train = json_files(tree, "train");
  const auto test = json_files(tree, "test");
  if (train.empty() && test.empty()) train = json_files(tree, "");
  if (train.empty()) fail_user("{} holds no LEAF files train/*.json", tree.root().string());
  std::map<std::string, int64_t> domains;
  Dataset dataset;
  dataset.name = name;
  dataset.kind = Kind::kImages;
  for (const char* letter = kClasses; *letter != '\0'; ++letter) dataset.class_names.emplace_back(1, *letter);
  dataset.train = make_records(read_writers(tree, train, name + ": reading writers"), domains);
  dataset.test = make_records(read_writers(tree, test, name + ": reading test writers"), domains);
  dataset.domain_names.resize(domains.size());
  for (const auto& [writer, number] : domains) dataset.domain_names[static_cast<size_t>(number)] = writer;
  if (dataset.domain_names.empty()) fail_user("{} holds no writers", tree.root().string());
  validate(dataset);
  return dataset;
}

}  // namespace sotto::data
