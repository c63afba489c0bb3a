#include "io/archive.h"

#include "base/error.h"
#include "base/text.h"

#include <archive.h>
#include <archive_entry.h>

#include <memory>

namespace sotto::io {
namespace {

using Reader = std::unique_ptr<archive, decltype(&archive_read_free)>;

constexpr size_t kBlock = 1 << 18;

Reader new_reader() {
  Reader reader(archive_read_new(), archive_read_free);
  SOTTO_INVARIANT(reader != nullptr);
  archive_read_support_filter_all(reader.get());
  archive_read_support_format_tar(reader.get());
  archive_read_support_format_zip(reader.get());
  archive_read_support_format_ar(reader.get());
  return reader;
}

[[noreturn]] void fail_archive(archive* reader, const std::string& where) {
  const char* reason = archive_error_string(reader);
  fail_user("{} is truncated or corrupt ({})", where, reason == nullptr ? "not an archive" : reason);
}

std::string entry_name(archive_entry* entry) {
  const char* name = archive_entry_pathname_utf8(entry);
  if (name == nullptr) name = archive_entry_pathname(entry);
  std::string text = name == nullptr ? "" : name;
  while (text.starts_with("./")) text.erase(0, 2);
  return text;
}

std::string entry_bytes(archive* reader, const std::string& where) {
  std::string bytes;
  const void* block = nullptr;
  size_t size = 0;
  la_int64_t offset = 0;
  while (true) {
    const int status = archive_read_data_block(reader, &block, &size, &offset);
    if (status == ARCHIVE_EOF) return bytes;
    if (status != ARCHIVE_OK) fail_archive(reader, where);  // a wrong checksum is only a warning to libarchive
    bytes.resize(static_cast<size_t>(offset));
    bytes.append(static_cast<const char*>(block), size);
  }
}

void visit_all(archive* reader, const std::string& where, const ArchiveVisitor& visit) {
  archive_entry* entry = nullptr;
  while (true) {
    const int status = archive_read_next_header(reader, &entry);
    if (status == ARCHIVE_EOF) return;
    if (status < ARCHIVE_WARN) fail_archive(reader, where);
    if (archive_entry_filetype(entry) != AE_IFREG) continue;
    const std::string name = entry_name(entry);
    std::string bytes = entry_bytes(reader, where);
    visit(name, bytes);
  }
}

}  // namespace

void visit_archive(const std::filesystem::path& path, const ArchiveVisitor& visit) {
  const Reader reader = new_reader();
  if (archive_read_open_filename(reader.get(), path.c_str(), kBlock) != ARCHIVE_OK) {
    fail_archive(reader.get(), path.string());
  }
  visit_all(reader.get(), path.string(), visit);
}

void visit_archive(std::string_view archive, const std::string& where, const ArchiveVisitor& visit) {
  const Reader reader = new_reader();
  if (archive_read_open_memory(reader.get(), archive.data(), archive.size()) != ARCHIVE_OK) {
    fail_archive(reader.get(), where);
  }
  visit_all(reader.get(), where, visit);
}

bool has_archive_name(const std::filesystem::path& path) {
  const std::string name = to_lower_ascii(path.filename().string());
  for (const char* ending : {".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst", ".zip"}) {
    if (name.ends_with(ending)) return true;
  }
  return false;
}

}  // namespace sotto::io
