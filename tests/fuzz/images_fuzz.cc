// Encoded images, as they lie in folders of them.
#include "../data/make_files.h"
#include "fuzz.h"
#include "io/images/decode.h"

#include <ATen/ATen.h>

std::vector<std::string> sotto::fuzz::seeds() {
  using namespace sotto::test;
  return {plain_png(3, 2, {200, 10, 60}),
          png_bytes(2, 2, 1, {0, 80, 160, 255}),
          png_bytes(2, 1, 4, {1, 2, 3, 4, 5, 6, 7, 8}),
          png16_bytes(2, 2, {0, 1000, 30000, 65535}),
          palette_png_bytes(2, 2, {0, 1, 1, 0}, {{255, 0, 0}, {0, 255, 0}}),
          jpeg_bytes(8, 8, {90}),
          jpeg_bytes(9, 5, {200, 10, 60}),
          jpeg_bytes(8, 8, {10, 20, 30, 40})};
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sotto;
  const std::string bytes = fuzz::bytes_of(data, size);
  for (const int64_t image_size : {0, 4}) {
    fuzz::attempt([&] {
      io::decode_images(
          {.count = 1, .bytes = [&](int64_t) { return bytes; }, .where = [](int64_t) { return "the input"; }},
          image_size, "");
    });
  }
  return 0;
}
