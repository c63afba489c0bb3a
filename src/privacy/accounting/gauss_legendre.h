// Nodes and weights of Gauss-Legendre quadrature on [-1, 1].
#pragma once

#include <array>

namespace sotto::privacy {

template <int kNodes>
struct GaussLegendre;
template <>
struct GaussLegendre<3> {
  static constexpr std::array<double, 3> nodes = {-0.774596669241483377, 0, 0.774596669241483377};
  static constexpr std::array<double, 3> weights = {0.555555555555555556, 0.888888888888888889, 0.555555555555555556};
};
template <>
struct GaussLegendre<5> {
  static constexpr std::array<double, 5> nodes = {-0.906179845938663993, -0.538469310105683091, 0, 0.538469310105683091,
                                                  0.906179845938663993};
  static constexpr std::array<double, 5> weights = {0.236926885056189088, 0.478628670499366468, 0.568888888888888889,
                                                    0.478628670499366468, 0.236926885056189088};
};

}  // namespace sotto::privacy
