// SHA-256 of bytes that come piece by piece. For bytes that are all there: base/files.h.
#pragma once

#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace sotto {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(std::string_view bytes);
  // Lower-case hexadecimal, of everything so far. The last call.
  std::string hex();

 private:
  evp_md_ctx_st* context_;
};

}  // namespace sotto
