// Whether a home could take part: everything that can be found out before anything is agreed to. Nothing leaves but
// the request for the plan, and nothing is written.
#pragma once

#include "federation/federation_plan.h"
#include "member/policy.h"
#include "net/key_folders.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace sotto::remote {

struct Finding {
  std::string what;
  bool ok = false;
  std::string detail;  // what was found; where it is not ok, what to do
};

struct PreflightOptions {
  std::filesystem::path home;
  std::string address;    // instead of the policy's
  bool insecure = false;  // without certificates, on the loopback interface
};

// In the order in which they matter; what cannot be looked at because of an earlier one is not there.
std::vector<Finding> check_home(const PreflightOptions& options);

// Runs `look`, which returns what was found; what it throws for the user becomes a finding that is not ok.
Finding finding(const std::string& what, const std::function<std::string()>& look);

// The home's certificate and key, which fit each other, its authority, the clock and the name in its policy; a UserError
// otherwise.
net::Identity checked_identity(const std::filesystem::path& home, const member::Policy& policy);

// Certificates are valid from before now until after now; says until when.
std::string validity_text(const std::string& certificate_pem);
// A UserError if less than this is free where the folder is or will be.
std::string free_space(const std::filesystem::path& folder, int64_t needed);
// Bytes of what the server sends, which is about what clients send back.
int64_t broadcast_bytes(const federation::PublicSetup& setup);

}  // namespace sotto::remote
