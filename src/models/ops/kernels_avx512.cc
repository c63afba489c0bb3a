#define SOTTO_KERNELS avx512
#define SOTTO_KERNELS_NAME "avx512"
#include "models/ops/kernels.inc"
