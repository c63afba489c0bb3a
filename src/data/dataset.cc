#include "data/dataset.h"

#include "base/error.h"
#include "base/utf8.h"

#include <ATen/ATen.h>

#include <cstring>

namespace sotto::data {
namespace {

void check_range(const at::Tensor& values, int64_t bound, const char* what, const std::string& where) {
  if (values.numel() == 0) return;
  const auto bad = (values < 0).logical_or(values >= bound).nonzero();
  if (bad.numel() == 0) return;
  const int64_t row = bad[0].item<int64_t>();
  fail_user("{}, record {}: {} {} is out of range, there are {}", where, row, what, values[row].item<int64_t>(), bound);
}

void check_x(const Records& records, Kind kind, const std::string& where) {
  const int64_t size = records.size();
  if (kind == Kind::kText) {
    if (static_cast<int64_t>(records.texts.size()) != size) {
      fail_user("{}: {} texts but {} labels", where, records.texts.size(), size);
    }
    return;
  }
  if (!records.x.defined() || records.x.size(0) != size) {
    fail_user("{}: {} records but {} labels", where, records.x.defined() ? records.x.size(0) : 0, size);
  }
  SOTTO_INVARIANT(records.x.is_contiguous());
  switch (kind) {
    case Kind::kImages:
      SOTTO_INVARIANT(records.x.scalar_type() == at::kByte && records.x.dim() == 4);
      break;
    case Kind::kFeatures:
      SOTTO_INVARIANT(records.x.scalar_type() == at::kFloat && records.x.dim() == 2);
      if (!at::isfinite(records.x).all().item<bool>()) {
        const auto bad = at::isfinite(records.x).logical_not().nonzero();
        fail_user("{}, record {}: feature {} is not a finite number", where, bad[0][0].item<int64_t>(),
                  bad[0][1].item<int64_t>());
      }
      break;
    case Kind::kTokens:
      SOTTO_INVARIANT(records.x.scalar_type() == at::kLong && records.x.dim() == 2);
      if (records.x.numel() > 0 && records.x.min().item<int64_t>() < 0) fail_user("{}: negative token numbers", where);
      break;
    case Kind::kText:
      break;
  }
}

void check_records(const Records& records, const Dataset& dataset, const std::string& where) {
  SOTTO_INVARIANT(records.y.scalar_type() == at::kLong && records.domain.scalar_type() == at::kLong);
  if (records.domain.size(0) != records.size()) {
    fail_user("{}: {} labels but {} domains", where, records.size(), records.domain.size(0));
  }
  check_x(records, dataset.kind, where);
  check_range(records.y, dataset.classes(), "label", where);
  check_range(records.domain, dataset.domains(), "domain", where);
}

// Results name them, as text that every reader of JSON understands.
void check_names(const std::vector<std::string>& names, const char* what, const std::string& where) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (!is_utf8(names[i])) {
      fail_user("{}: the name of {} {} is not UTF-8 text; rename it, or save the file as UTF-8", where, what, i);
    }
  }
}

constexpr float kHalfRange = 127.5F;
constexpr float kScale = 1.0F / kHalfRange;

[[gnu::always_inline]] inline void to_unit_range_body(const uint8_t* in, float* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = (static_cast<float>(in[i]) - kHalfRange) * kScale;
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void to_unit_range_avx2(const uint8_t* in, float* out, int64_t count) {
  to_unit_range_body(in, out, count);
}
#endif

// Bytes to [-1, 1]. Both versions round alike, so results do not depend on the machine.
void to_unit_range(const uint8_t* in, float* out, int64_t count) {
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (has_avx2) return to_unit_range_avx2(in, out, count);
#endif
  to_unit_range_body(in, out, count);
}

void reuse(at::Tensor& tensor, at::IntArrayRef shape, at::ScalarType type) {
  if (!tensor.defined() || tensor.scalar_type() != type) {
    tensor = at::empty(shape, at::TensorOptions().dtype(type));
  } else if (tensor.sizes() != shape) {
    tensor.resize_(shape);
  }
}

}  // namespace

std::vector<int64_t> Dataset::record_shape() const {
  SOTTO_INVARIANT(train.x.defined());
  return train.x.sizes().slice(1).vec();
}

void validate(const Dataset& dataset) {
  check_names(dataset.class_names, "class", dataset.name);
  check_names(dataset.domain_names, "domain", dataset.name);
  if (dataset.train.size() == 0) fail_user("{} has no training records", dataset.name);
  SOTTO_INVARIANT(!dataset.domain_names.empty());
  check_records(dataset.train, dataset, dataset.name + " (training)");
  if (dataset.test.size() == 0) return;
  check_records(dataset.test, dataset, dataset.name + " (test)");
  if (dataset.kind != Kind::kText && dataset.test.x.sizes().slice(1) != dataset.train.x.sizes().slice(1)) {
    fail_user("{}: test records have another shape than training records", dataset.name);
  }
}

void gather(const Records& records, const at::Tensor& indices, Batch& batch) {
  SOTTO_INVARIANT(records.x.defined() && records.x.is_contiguous() && indices.is_contiguous());
  const bool images = records.x.scalar_type() == at::kByte;
  const int64_t count = indices.size(0);
  c10::SmallVector<int64_t, 4> shape(records.x.sizes().begin(), records.x.sizes().end());
  shape[0] = count;
  reuse(batch.x, shape, images ? at::kFloat : records.x.scalar_type());
  const int64_t one[] = {count};
  reuse(batch.y, one, at::kLong);

  const int64_t size = records.size();
  const int64_t width = records.x.numel() / std::max<int64_t>(size, 1);
  const size_t row_bytes = static_cast<size_t>(width) * records.x.element_size();
  const auto* index = indices.data_ptr<int64_t>();
  const auto* labels = records.y.data_ptr<int64_t>();
  const auto* rows = static_cast<const uint8_t*>(records.x.data_ptr());
  auto* out_labels = batch.y.data_ptr<int64_t>();
  auto* out = static_cast<uint8_t*>(batch.x.data_ptr());
  for (int64_t i = 0; i < count; ++i) {
    SOTTO_INVARIANT(index[i] >= 0 && index[i] < size);
    out_labels[i] = labels[index[i]];
    const uint8_t* const row = rows + static_cast<size_t>(index[i]) * row_bytes;
    if (images) {
      to_unit_range(row, reinterpret_cast<float*>(out) + i * width, width);
    } else {
      std::memcpy(out + static_cast<size_t>(i) * row_bytes, row, row_bytes);
    }
  }
}

}  // namespace sotto::data
