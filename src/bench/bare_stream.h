// What the network and TLS alone take: one stream of chunks as uploads are sent, to somebody who throws them away.
#pragma once

#include "net/certificates.h"
#include "net/key_folders.h"

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

namespace sotto::bench {

// A process that takes streams in and keeps nothing of them: the messages, the certificates and the settings of a
// federation's server, and nothing else of it. To be made before this process has threads or has used gRPC.
class BareSink {
 public:
  BareSink(const net::KeyPair& server, const std::string& authority_pem);
  ~BareSink();
  BareSink(const BareSink&) = delete;
  BareSink& operator=(const BareSink&) = delete;

  std::string address() const;
  pid_t process() const { return process_; }

 private:
  pid_t process_ = -1;
  int end_ = -1;  // the sink ends when this is closed
  int port_ = 0;
};

// A connection to it.
class BareSender {
 public:
  BareSender(const std::string& address, const net::Identity& identity);
  ~BareSender();
  BareSender(const BareSender&) = delete;
  BareSender& operator=(const BareSender&) = delete;

  // Seconds that so many bytes take, until they have been taken in.
  double send(int64_t bytes);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace sotto::bench
