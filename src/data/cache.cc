#include "data/cache.h"

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "data/readers/feature_file.h"
#include "io/safetensors.h"

#include <fmt/format.h>

#include <optional>

namespace sotto::data {
namespace {

// Raised whenever a reader, decoder or the drawing of digits gives different results than before.
constexpr int kReaderVersion = 1;
constexpr const char* kStampKey = "source";

int64_t modified(const fs::path& path) {
  return fs::last_write_time(path).time_since_epoch().count();
}

// Changes whenever a file of the source does.
std::string stamp_of(const fs::path& source) {
  try {
    if (!fs::is_directory(source)) return fmt::format("{} bytes, {}", fs::file_size(source), modified(source));
    std::string files;
    for (auto it = fs::recursive_directory_iterator(source, fs::directory_options::follow_directory_symlink);
         it != fs::recursive_directory_iterator(); ++it) {
      if (it->is_regular_file()) {
        files += fmt::format("{} {} {}\n", it->path().string(), it->file_size(), modified(it->path()));
      }
    }
    return "files " + sha256(files);
  } catch (const fs::filesystem_error& error) {
    fail_user("cannot read {}: {}", error.path1().string(), error.code().message());
  }
}

std::optional<Dataset> read_cache(const fs::path& path, const std::string& name, const std::string& stamp) {
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  try {
    const auto metadata = io::read_safetensors(path).metadata;
    const auto found = metadata.find(kStampKey);
    if (found == metadata.end() || found->second != stamp) return std::nullopt;
    return read_feature_file(path, name);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

void write_cache(const fs::path& path, const Dataset& dataset, const std::string& stamp) {
  try {
    make_folder(path.parent_path());
    write_feature_file(path, dataset, {{kStampKey, stamp}});
  } catch (const UserError& error) {
    warn("{} will be decoded again next time: {}", dataset.name, error.what());
  }
}

}  // namespace

Dataset cached(const std::string& name, const std::string& key, const std::string& stamp,
               const std::function<Dataset()>& make) {
  const std::string hash = sha256(name + "\n" + key).substr(0, 12);
  const fs::path path = data_home() / "cache" / fmt::format("{}-{}.safetensors", name, hash);
  const std::string full_stamp = fmt::format("readers {}, {}", kReaderVersion, stamp);
  if (auto dataset = read_cache(path, name, full_stamp)) return *std::move(dataset);
  Dataset dataset = make();
  write_cache(path, dataset, full_stamp);
  return dataset;
}

Dataset cached_decoding(const std::string& name, const fs::path& source, int64_t image_size,
                        const std::function<Dataset()>& decode) {
  return cached(name, fmt::format("{}\n{}", fs::absolute(source).string(), image_size), stamp_of(source), decode);
}

}  // namespace sotto::data
