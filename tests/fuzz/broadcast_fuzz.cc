// What a server sends its clients, in the hands of the methods. The first byte says which method.
#include "../serve/at_home.h"
#include "fuzz.h"
#include "io/safetensors.h"

#include <memory>

namespace {

using namespace sotto;

// A home that takes part in a federation of this method.
struct Taker {
  explicit Taker(const std::string& method)
      : setup(federation::small_setup(
            fmt::format("rounds = 2\n[data]\nclients = 2\n[federation]\nbatch = 16\n[method]\nname = \"{}\"\n{}{}",
                        method, federation::needed_options(method), federation::privacy_terms(method)))),
        plan(serve::plan_of(setup)),
        home(fuzz::scratch() / ("home-" + method), setup, plan, 0) {}

  federation::Setup setup;
  federation::FederationPlan plan;
  serve::HomeOf home;
};

const std::vector<std::unique_ptr<Taker>>& takers() {
  static const std::vector<std::unique_ptr<Taker>> all = [] {
    std::vector<std::unique_ptr<Taker>> made;
    for (const char* method : {"ldp-fedavg", "fedproto", "dp-head"}) made.push_back(std::make_unique<Taker>(method));
    return made;
  }();
  return all;
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
  std::vector<std::string> examples;
  for (size_t i = 0; i < takers().size(); ++i) {
    const federation::Setup& setup = takers()[i]->setup;
    const methods::Broadcast first = setup.method().make_server(setup.public_context())->open();
    examples.push_back(static_cast<char>('0' + i) + io::safetensors_bytes({.tensors = first.values, .metadata = {}}));
  }
  return examples;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t which = data[0] % takers().size();
  return fuzz::attempt([&] {
    const methods::Broadcast broadcast{
        1, clone(io::parse_safetensors(fuzz::bytes_of(data + 1, size - 1), "the broadcast").tensors)};
    takers()[which]->home.member().evaluate(broadcast);
  });
}
