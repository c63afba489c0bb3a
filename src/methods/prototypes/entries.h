// The six prototype frameworks, by name, and class means without a framework.
#pragma once

#include "methods/prototypes/framework.h"

namespace sotto::methods {

std::unique_ptr<Framework> make_fedproto(settings::Section& section);
std::unique_ptr<Framework> make_fedpcl(settings::Section& section);
std::unique_ptr<Framework> make_fpl(settings::Section& section);
std::unique_ptr<Framework> make_fedplvm(settings::Section& section);
std::unique_ptr<Framework> make_fedtgp(settings::Section& section);
std::unique_ptr<Framework> make_mpft(settings::Section& section);

MethodEntry fedproto();
MethodEntry fedpcl();
MethodEntry fpl();
MethodEntry fedplvm();
MethodEntry fedtgp();
MethodEntry mpft();
MethodEntry dp_prototypes();

}  // namespace sotto::methods
