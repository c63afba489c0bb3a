// The bundled front end of web/, as the build made it.
#pragma once

#include <string_view>

namespace sotto::report {

// One HTML file; where its data goes it says __SOTTO_DATA__, once.
std::string_view page_shell();

}  // namespace sotto::report
