// Every field that server and clients send each other stands in SECURITY.md, with where it comes from and who sees it.
#include "base/files.h"
#include "base/text.h"
#include "remote/federation.pb.h"

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

namespace sotto::remote {
namespace {

// "Message.field" of the file and everything nested in it.
void add_fields(const google::protobuf::Descriptor& message, std::set<std::string>& fields) {
  for (int i = 0; i < message.field_count(); ++i) {
    fields.insert(message.name() + "." + message.field(i)->name());
  }
  for (int i = 0; i < message.nested_type_count(); ++i) add_fields(*message.nested_type(i), fields);
}

std::set<std::string> sent_fields() {
  std::set<std::string> fields;
  const google::protobuf::FileDescriptor& file = *v1::PlanRequest::descriptor()->file();
  for (int i = 0; i < file.message_type_count(); ++i) add_fields(*file.message_type(i), fields);
  return fields;
}

// The rows of the table below "## Every field that travels": field, where it comes from, who sees it.
std::map<std::string, std::vector<std::string>> stated_fields() {
  std::map<std::string, std::vector<std::string>> fields;
  const std::string text = read_file(fs::path(SOTTO_SOURCE) / "SECURITY.md");
  const size_t begin = text.find("## Every field that travels");
  EXPECT_NE(begin, std::string::npos);
  const size_t end = text.find("\n## ", begin + 3);
  for (const std::string& line : split(text.substr(begin, end - begin), '\n')) {
    if (!line.starts_with("| `")) continue;
    std::vector<std::string> cells = split(line, '|');
    for (const std::string& name : split(trim(cells[1]), ',')) {
      std::string field = trim(name);
      if (field.size() > 2) field = field.substr(1, field.size() - 2);
      EXPECT_TRUE(fields.emplace(field, cells).second) << field << " is there twice";
    }
  }
  return fields;
}

TEST(Fields, AreAllStated) {
  const auto stated = stated_fields();
  const auto sent = sent_fields();
  ASSERT_GT(sent.size(), 20u);
  for (const std::string& field : sent) {
    EXPECT_TRUE(stated.contains(field))
        << field
        << " is sent, and SECURITY.md does not say where it comes from and who sees it: if it comes from records "
        << "and is no release, it must not be sent";
  }
  for (const auto& [field, cells] : stated) {
    EXPECT_TRUE(sent.contains(field)) << field << " is in SECURITY.md, and is not sent";
    ASSERT_GE(cells.size(), 4u) << field;
    EXPECT_NE(trim(cells[2]), "") << field;
    EXPECT_NE(trim(cells[3]), "") << field;
  }
}

// What comes from records at all.
TEST(Fields, OnlyReleasesComeFromRecords) {
  std::set<std::string> from_records;
  for (const auto& [field, cells] : stated_fields()) {
    if (cells[2].find("release") != std::string::npos) from_records.insert(field);
  }
  EXPECT_EQ(from_records, (std::set<std::string>{"Chunk.data", "OfferRequest.digest", "JoinReply.seen_digest",
                                                 "NextReply.digest", "FetchRequest.digest", "OfferRequest.releases"}));
}

}  // namespace
}  // namespace sotto::remote
