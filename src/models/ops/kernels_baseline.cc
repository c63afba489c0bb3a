#define SOTTO_KERNELS baseline
#define SOTTO_KERNELS_NAME "baseline"
#include "models/ops/kernels.inc"
