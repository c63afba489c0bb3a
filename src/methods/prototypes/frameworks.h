// The six prototype frameworks, by name.
#pragma once

#include "methods/prototypes/framework.h"

namespace sotto::methods {

std::unique_ptr<Framework> make_fedproto(config::Section& section);
std::unique_ptr<Framework> make_fedpcl(config::Section& section);
std::unique_ptr<Framework> make_fpl(config::Section& section);
std::unique_ptr<Framework> make_fedplvm(config::Section& section);
std::unique_ptr<Framework> make_fedtgp(config::Section& section);
std::unique_ptr<Framework> make_mpft(config::Section& section);

MethodEntry fedproto();
MethodEntry fedpcl();
MethodEntry fpl();
MethodEntry fedplvm();
MethodEntry fedtgp();
MethodEntry mpft();

}  // namespace sotto::methods
