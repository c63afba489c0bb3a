// Moments of one step's privacy loss by quadrature, to about 1e-13. Good for estimates and Rényi divergences; not a
// certificate.
#pragma once

#include "privacy/accounting/worst_pair.h"

#include <complex>
#include <cstdint>
#include <vector>

namespace sotto::privacy {

// Points and masses with Σ e^{log_q} f(loss) ≈ E_Q[f(loss)].
struct LossNodes {
  std::vector<double> loss;
  std::vector<double> log_q;

  size_t size() const { return loss.size(); }
};

struct NodeLimits {
  double max_tilt = 0;       // the nodes serve E_P[e^{zL}] for -1 ≤ Re z ≤ max_tilt
  double max_frequency = 0;  // and |Im z| ≤ max_frequency
  double tail_mass = 0;      // Gaussian losses that a grid of this tail mass would cut are left out
};

LossNodes loss_nodes(const Step& step, Direction direction, const NodeLimits& limits);

// The P-mass, to leading order, that nodes with this tail mass leave out.
double mass_left_out(const Step& step, Direction direction, double tail_mass);

// ln E_P[e^{λL}] with the first two derivatives.
struct Cumulant {
  double value = 0;
  double mean = 0;
  double variance = 0;
};
Cumulant cumulant(const LossNodes& nodes, double tilt);

// count·ln E_P[e^{zL}] at z = λ + iw for equidistant w, one after the other: a rotation per node instead of a sine.
class LineOfMoments {
 public:
  LineOfMoments(const LossNodes& nodes, double tilt, double count);

  size_t size() const { return loss_.size(); }
  void start(double first, double spacing);
  // The value at the next w; its imaginary part is meant modulo 2π·count.
  std::complex<double> next();

 private:
  void turn_exactly();

  double count_;
  double first_ = 0;
  double spacing_ = 0;
  int64_t position_ = 0;
  double scale_;
  std::vector<double> loss_;
  std::vector<double> weight_;
  std::vector<double> real_;
  std::vector<double> imag_;
  std::vector<double> cos_;
  std::vector<double> sin_;
};

// ln E_Q[e^{αL}], accurate in relative terms however small it is: what (α-1)·RDP(α) is.
double log_renyi_moment(const LossNodes& nodes, double order);

}  // namespace sotto::privacy
