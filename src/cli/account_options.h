// Options of `account` and `calibrate` that say what the steps are, turned into the JSON question of account_query.h.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <string>
#include <vector>

namespace sotto::cli {

class Command;

class QuestionOptions {
 public:
  // Adds --NAME for a key; underscores become hyphens. Numbers are checked when the question is made.
  void add_number(Command& command, const std::string& key, const std::string& help);
  void add_text(Command& command, const std::string& key, const std::string& help);
  void add_compose(Command& command);

  // A UserError if something that should be a number is none.
  nlohmann::json question() const;

 private:
  struct Entry {
    std::string key;
    bool number = false;
    std::string value;
  };
  Entry& add(Command& command, const std::string& key, const std::string& help, bool number);

  std::vector<std::unique_ptr<Entry>> entries_;
  std::string compose_;
};

}  // namespace sotto::cli
