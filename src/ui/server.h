// What the local page of `sotto ui` is served from: looks at run directories, writes nothing.
#pragma once

#include "report/page.h"
#include "ui/federations.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace sotto::ui {

struct UiAnswer {
  int status = 200;
  std::string type = "application/json";
  std::string body = {};
};

// Answers questions about the runs below one folder. Thread-safe. A run is named by its path relative to that folder,
// exactly as list() gives it, and nothing else is ever opened.
class RunBrowser {
 public:
  explicit RunBrowser(const std::filesystem::path& root);

  // What every run is and how far it has come, and how federations stand.
  nlohmann::json list();
  // One of the federations.
  nlohmann::json federation(const std::string& id) { return federations_.one(id); }
  // The page's document of these runs, each that is not finished with the command that resumes it ("resume"), and a stamp
  // that changes with their files.
  nlohmann::json document(const std::vector<std::string>& runs);
  std::string stamp(const std::vector<std::string>& runs) const;
  // The budget board of `run`, each further round priced as in `like`.
  nlohmann::json board(const std::string& run, const std::string& like);

 private:
  std::vector<std::filesystem::path> folders_of(const std::vector<std::string>& runs) const;
  nlohmann::json entry(const std::string& run);

  std::filesystem::path root_;
  FederationBrowser federations_;
  privacy::GuaranteeCache cache_;
  std::mutex mutex_;
  std::map<std::string, std::pair<std::string, nlohmann::json>> entries_;  // by run: stamp, entry
};

// A server on the loopback interface alone. Whoever does not know the token is answered with 403.
class UiServer {
 public:
  // Port 0: any that is free. A port in use is a UserError.
  UiServer(RunBrowser& browser, int port);
  ~UiServer();

  // Where the page is, token included.
  std::string address() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace sotto::ui
