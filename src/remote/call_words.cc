#include "remote/call_words.h"

#include <array>
#include <string_view>

namespace sotto::remote {
namespace {

struct Phrase {
  std::string_view said;
  std::string_view meant;
};

// The first that fits.
constexpr std::array<Phrase, 9> kPhrases{{
    {"Connection refused", "nobody listens there: the server is not up, or the address is another"},
    {"Domain name not found", "there is no host of this name"},
    {"DNS resolution failed", "there is no host of this name"},
    {"is not in peer certificate", "the server's certificate is not for the host in this address"},
    {"certificate verify failed", "the server's certificate is not of the authority that this home knows"},
    {"CERTIFICATE_VERIFY_FAILED", "the server's certificate is not of the authority that this home knows"},
    {"wrong version number", "it answers without certificates; is it the right port?"},
    {"Socket closed",
     "it hangs up: it wants a certificate and gets none that it knows, or it is the port for something else"},
    {"Deadline Exceeded", "no answer came in time"},
}};

}  // namespace

std::string unreachable_in_words(const std::string& said) {
  for (const Phrase& phrase : kPhrases) {
    if (said.find(phrase.said) != std::string::npos) return std::string(phrase.meant);
  }
  return said;
}

}  // namespace sotto::remote
