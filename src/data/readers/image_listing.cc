#include "data/readers/image_listing.h"

#include "base/error.h"
#include "io/images/decode.h"

#include <ATen/ATen.h>

namespace sotto::data {
namespace {

Records make_records(const std::vector<ListedImage>& images, const at::Tensor& x) {
  if (images.empty()) return {};
  std::vector<int64_t> labels;
  std::vector<int64_t> domains;
  for (const ListedImage& image : images) {
    labels.push_back(image.label);
    domains.push_back(image.domain);
  }
  return {x, at::tensor(labels), at::tensor(domains), {}};
}

}  // namespace

Dataset decode_listing(const FileTree& tree, const ImageListing& listing, const std::string& name, int64_t image_size) {
  if (listing.train.empty()) fail_user("{} holds no training images", tree.root().string());
  const auto train = static_cast<int64_t>(listing.train.size());
  const auto count = train + static_cast<int64_t>(listing.test.size());
  const auto file = [&](int64_t i) -> const std::string& {
    return (i < train ? listing.train[static_cast<size_t>(i)] : listing.test[static_cast<size_t>(i - train)]).file;
  };
  const at::Tensor x = io::decode_images(
      {count, [&](int64_t i) { return tree.read(file(i)); }, [&](int64_t i) { return tree.where(file(i)); }},
      image_size, name);
  Dataset dataset;
  dataset.name = name;
  dataset.kind = Kind::kImages;
  dataset.class_names = listing.class_names;
  dataset.domain_names = listing.domain_names;
  dataset.train = make_records(listing.train, x.slice(0, 0, train));
  dataset.test = make_records(listing.test, x.slice(0, train));
  validate(dataset);
  return dataset;
}

}  // namespace sotto::data
