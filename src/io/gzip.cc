#include "io/gzip.h"

#include "base/error.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

namespace sotto::io {
namespace {

constexpr int kGzipWindow = 15 + 16;
constexpr size_t kFirstGuess = 1 << 20;

class Inflater {
 public:
  Inflater() { SOTTO_INVARIANT(inflateInit2(&stream, kGzipWindow) == Z_OK); }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  z_stream stream{};
};

uInt clamp_to_uint(size_t size) {
  return static_cast<uInt>(std::min<size_t>(size, std::numeric_limits<uInt>::max()));
}

}  // namespace

bool is_gzipped(std::string_view bytes) {
  return bytes.starts_with("\x1f\x8b");
}

std::string gunzip(std::string_view bytes, const std::string& where) {
  Inflater inflater;
  z_stream& stream = inflater.stream;
  std::string out(std::max(kFirstGuess, bytes.size() * 3), '\0');
  size_t consumed = 0;
  size_t produced = 0;
  while (true) {
    if (produced == out.size()) out.resize(out.size() * 2);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + consumed));
    stream.avail_in = clamp_to_uint(bytes.size() - consumed);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + produced);
    stream.avail_out = clamp_to_uint(out.size() - produced);
    const uInt in_before = stream.avail_in;
    const uInt out_before = stream.avail_out;
    const int status = inflate(&stream, Z_NO_FLUSH);
    consumed += in_before - stream.avail_in;
    produced += out_before - stream.avail_out;
    if (status == Z_STREAM_END) {
      if (!is_gzipped(bytes.substr(consumed))) break;
      inflateReset(&stream);
    } else if (status == Z_BUF_ERROR || (status == Z_OK && consumed == bytes.size() && stream.avail_out > 0)) {
      fail_user("{} is truncated: its gzip data ends early", where);
    } else if (status != Z_OK) {
      fail_user("{} is corrupt: its gzip data cannot be inflated", where);
    }
  }
  out.resize(produced);
  return out;
}

}  // namespace sotto::io
