#define SOTTO_KERNELS avx2
#define SOTTO_KERNELS_NAME "avx2"
#include "models/ops/kernels.inc"
