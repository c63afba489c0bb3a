// A federation's server as a client sees it.
#pragma once

#include "federation/messages.h"
#include "net/key_folders.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

namespace sotto::remote {

// The server cannot be reached, or the connection broke: worth another try.
class Unreachable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// For one thread, but for hang_up. What the server refuses for good is a UserError with its words; a broken connection
// is Unreachable.
class Client {
 public:
  // With the home's certificate. Without one (loopback only) the client is who it says it is.
  Client(const std::string& address, const std::optional<net::Identity>& identity, const std::string& name);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Ends the call that is under way, from another thread; the caller gets Unreachable.
  void hang_up();

  std::string plan();
  federation::Joined join(const std::string& plan_hash);
  // Waits for up to half a minute.
  federation::Work next(const std::string& plan_hash);
  // Bytes with this digest, or Unreachable; then the next try goes on where this one stopped.
  std::string fetch(const std::string& digest, int64_t bytes);
  // Sends what the server does not have yet of this file, and waits while it is busy: kStored, kLate or kRefused.
  federation::Answer deliver(const federation::Offer& upload, const std::filesystem::path& file,
                             const std::function<bool()>& stop);
  void skip(int64_t round);
  void leave();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// A certificate for the request (PEM), by a one-time token. The server shows one of `authority_pem`.
std::string enrol(const std::string& address, const std::string& authority_pem, const std::string& token,
                  const std::string& request_pem);

}  // namespace sotto::remote
