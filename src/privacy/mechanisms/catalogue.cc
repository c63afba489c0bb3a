#include "privacy/mechanisms/catalogue.h"

#include "privacy/event.h"

namespace sotto::privacy {

const std::vector<MechanismEntry>& mechanism_catalogue() {
  static const std::vector<MechanismEntry> entries = {
      {kGaussianMechanism, "noise per group of coordinates, paid for once; many steps of it are DP-SGD",
       "Dwork et al., EUROCRYPT 2006; Abadi et al., CCS 2016"},
      {kCohortGaussianMechanism, "the same for the sum of a cohort of fixed size whose members nobody else knows",
       "Balle, Barthe and Gaboardi, NeurIPS 2018"},
      {kLaplaceMechanism, "noise for values that are bounded in the sum of their moduli", "Dwork et al., TCC 2006"},
      {kTopKMechanism, "which k scores are largest, as a set", "Qiao et al., ICML 2021"},
      {kGumbelTopKMechanism, "the same by k picks of the exponential mechanism, for less",
       "Durfee and Rogers, NeurIPS 2019; Cesar and Rogers, ALT 2021"},
      {kDiscreteGaussianMechanism, "whole numbers with exact discrete Gaussian noise",
       "Canonne, Kamath and Steinke, NeurIPS 2020"},
      {kTrustedMechanism, "bounded values for a server that is declared trusted: it adds the noise for everybody else",
       ""},
      {kClearMechanism, "values as they are: no ε can be proven", ""},
  };
  return entries;
}

}  // namespace sotto::privacy
