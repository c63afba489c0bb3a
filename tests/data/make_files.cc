#include "make_files.h"

#include <archive.h>
#include <archive_entry.h>
#include <png.h>
#include <turbojpeg.h>
#include <zlib.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>

namespace sotto::test {
namespace {

void append_to_string(png_structp png, png_bytep bytes, png_size_t size) {
  static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<char*>(bytes), size);
}

void no_flush(png_structp) {}

// One row after the other, `row_bytes` each.
std::string encode_png(int width, int height, int depth, int colour_type, const uint8_t* rows, size_t row_bytes,
                       const std::vector<png_color>& palette) {
  std::string out;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(png, &out, append_to_string, no_flush);
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), depth, colour_type,
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (!palette.empty()) png_set_PLTE(png, info, palette.data(), static_cast<int>(palette.size()));
  png_write_info(png, info);
  for (int row = 0; row < height; ++row) png_write_row(png, rows + static_cast<size_t>(row) * row_bytes);
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return out;
}

}  // namespace

void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream stream(path, std::ios::binary);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!stream) throw std::runtime_error("cannot write " + path.string());
}

std::string gzipped(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, bytes.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string tar_gz(const std::map<std::string, std::string>& files) {
  size_t total = 1 << 16;
  for (const auto& [name, bytes] : files) total += bytes.size() + 2048;
  std::string out(total, '\0');
  size_t used = 0;
  archive* writer = archive_write_new();
  archive_write_add_filter_gzip(writer);
  archive_write_set_format_ustar(writer);
  archive_write_open_memory(writer, out.data(), out.size(), &used);
  for (const auto& [name, bytes] : files) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_size(entry, static_cast<la_int64_t>(bytes.size()));
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_write_header(writer, entry);
    archive_write_data(writer, bytes.data(), bytes.size());
    archive_entry_free(entry);
  }
  archive_write_close(writer);
  archive_write_free(writer);
  out.resize(used);
  return out;
}

std::string idx_bytes(const std::vector<uint32_t>& shape, const std::vector<uint8_t>& values) {
  std::string out{'\0', '\0', '\x08', static_cast<char>(shape.size())};
  for (const uint32_t size : shape) {
    for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(size >> shift));
  }
  out.append(values.begin(), values.end());
  return out;
}

std::string png_bytes(int width, int height, int samples, const std::vector<uint8_t>& pixels) {
  constexpr int kTypes[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                            PNG_COLOR_TYPE_RGB_ALPHA};
  return encode_png(width, height, 8, kTypes[samples - 1], pixels.data(), static_cast<size_t>(width * samples), {});
}

std::string png16_bytes(int width, int height, const std::vector<uint16_t>& grey) {
  std::vector<uint8_t> big_endian;
  for (const uint16_t value : grey) {
    big_endian.push_back(static_cast<uint8_t>(value >> 8));
    big_endian.push_back(static_cast<uint8_t>(value & 0xFF));
  }
  return encode_png(width, height, 16, PNG_COLOR_TYPE_GRAY, big_endian.data(), static_cast<size_t>(width) * 2, {});
}

std::string palette_png_bytes(int width, int height, const std::vector<uint8_t>& indices,
                              const std::vector<std::vector<uint8_t>>& colours) {
  std::vector<png_color> palette;
  for (const auto& colour : colours) palette.push_back({colour[0], colour[1], colour[2]});
  return encode_png(width, height, 8, PNG_COLOR_TYPE_PALETTE, indices.data(), static_cast<size_t>(width), palette);
}

std::string jpeg_bytes(int width, int height, const std::vector<uint8_t>& colour) {
  std::vector<uint8_t> pixels;
  for (int i = 0; i < width * height; ++i) pixels.insert(pixels.end(), colour.begin(), colour.end());
  const int format = colour.size() == 1 ? TJPF_GRAY : colour.size() == 3 ? TJPF_RGB : TJPF_CMYK;
  unsigned char* encoded = nullptr;
  unsigned long size = 0;
  tjhandle handle = tjInitCompress();
  if (tjCompress2(handle, pixels.data(), width, 0, height, format, &encoded, &size,
                  colour.size() == 1 ? TJSAMP_GRAY : TJSAMP_444, 100, 0) != 0) {
    throw std::runtime_error(tjGetErrorStr2(handle));
  }
  std::string out(reinterpret_cast<char*>(encoded), size);
  tjFree(encoded);
  tjDestroy(handle);
  return out;
}

std::string plain_png(int width, int height, const std::vector<uint8_t>& colour) {
  std::vector<uint8_t> pixels;
  for (int i = 0; i < width * height; ++i) pixels.insert(pixels.end(), colour.begin(), colour.end());
  return png_bytes(width, height, static_cast<int>(colour.size()), pixels);
}

Environment::Environment(const std::string& name, const std::string& value) : name_(name) {
  const char* old = std::getenv(name.c_str());
  was_set_ = old != nullptr;
  if (was_set_) old_ = old;
  ::setenv(name.c_str(), value.c_str(), 1);
}

Environment::~Environment() {
  if (was_set_) {
    ::setenv(name_.c_str(), old_.c_str(), 1);
  } else {
    ::unsetenv(name_.c_str());
  }
}

}  // namespace sotto::test
