#include "federation/federation_plan.h"

#include "base/error.h"
#include "base/files.h"
#include "config/load.h"
#include "data/readers/table.h"
#include "methods/catalogue.h"
#include "settings/toml.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

namespace sotto::federation {
namespace {

using nlohmann::json;

constexpr int kVersion = 1;
constexpr size_t kLongestPlan = 4 << 20;  // bytes
constexpr int64_t kMostClasses = 100'000;
constexpr const char* kSource = "the plan";

constexpr std::array<std::pair<data::Kind, const char*>, 3> kKinds{
    {{data::Kind::kImages, "images"}, {data::Kind::kFeatures, "features"}, {data::Kind::kTokens, "tokens"}}};

std::string word_of(data::Kind kind) {
  return std::find_if(kKinds.begin(), kKinds.end(), [&](const auto& entry) { return entry.first == kind; })->second;
}

data::Kind read_kind(settings::Section& section) {
  std::vector<std::string> words;
  for (const auto& [kind, word] : kKinds) words.emplace_back(word);
  const std::string word = section.required_one_of("kind", words);
  return std::find_if(kKinds.begin(), kKinds.end(), [&](const auto& entry) { return entry.second == word; })->first;
}

const std::vector<std::string>& labels_of(const data::TableSchema& schema) {
  const auto label = std::find_if(schema.columns.begin(), schema.columns.end(),
                                  [](const data::Column& c) { return c.kind == data::ColumnKind::kLabel; });
  return label->values;
}

methods::PublicFacts read_facts(settings::Section& section, const config::RunSpec& spec) {
  methods::PublicFacts facts;
  const auto& schema = spec.data.schema.declared;
  if (schema && spec.data.features.empty()) {
    facts.kind = data::Kind::kFeatures;
    facts.task.record_shape = {data::encoded_width(*schema)};
    facts.class_names = labels_of(*schema);
    for (const char* key : {"kind", "shape", "classes"}) {
      if (section.has(key)) section.fail(key, "follows from data.schema; leave it out");
    }
  } else {
    facts.kind = read_kind(section);
    facts.task.record_shape = section.integers("shape", {}, settings::between(1, 1 << 24));
    facts.class_names = section.texts("classes", {});
    const size_t dimensions = facts.kind == data::Kind::kImages ? 3 : 1;
    if (facts.task.record_shape.size() != dimensions) {
      section.fail("shape", dimensions == 3 ? "must be [channels, height, width]" : "must be [numbers in a record]");
    }
    if (facts.class_names.size() < 2 || facts.class_names.size() > kMostClasses) {
      section.fail("classes", "must name the classes, two or more, in the order of their labels");
    }
    facts.feature_blocks = section.integers("feature_blocks", {}, settings::at_least(1));
  }
  facts.task.tokens = facts.kind == data::Kind::kTokens;
  facts.task.classes = facts.classes();
  facts.average_records = section.required_number("records", settings::at_least(1), "200");
  facts.least_records =
      section.integer("least_records", static_cast<int64_t>(facts.average_records), settings::at_least(1));
  if (static_cast<double>(facts.least_records) > facts.average_records) {
    section.fail("least_records", "is more than declared.records, the average");
  }
  if (spec.privacy && spec.privacy->records > 0) {
    facts.average_records = static_cast<double>(spec.privacy->records);
    facts.least_records = spec.privacy->records;
  }
  return facts;
}

json to_json(const methods::PublicFacts& facts) {
  return {{"kind", word_of(facts.kind)},      {"shape", facts.task.record_shape},
          {"classes", facts.class_names},     {"feature_blocks", facts.feature_blocks},
          {"records", facts.average_records}, {"least_records", facts.least_records}};
}

// How the server would find data is nobody's business, and no client's.
config::RunSpec without_paths(config::RunSpec spec) {
  const data::DataOptions fallback;
  spec.name.clear();
  spec.data.name = "declared";
  spec.data.path.clear();
  spec.data.otherwise.clear();
  spec.data.partition = fallback.partition;
  return spec;
}

constexpr const char* kEncoder =
    "encoder";  // also of prototypes, where it is a word that a folder may have as its name
// Keys whose value may be a file; where it is anything else, a name of something installed or a word.
constexpr std::array<const char*, 9> kMayNameFiles{"path",       "weights", "schema", "curve",      "features",
                                                   "project_on", kEncoder,  "centre", "public_data"};

// Also one that only looks like a name, and lies where the program was started: there files are found before what is
// installed. Of several backbones every one counts.
bool names_file(const std::string& key, const std::string& value) {
  if (value.find_first_of("/\\~") != std::string::npos) return true;
  const auto lies_here = [&](const std::string& name) {
    std::error_code ignored;
    return key == kEncoder ? fs::is_regular_file(name, ignored) : fs::exists(name, ignored);
  };
  std::istringstream parts(value);
  for (std::string part; std::getline(parts, part, '+');) {
    if (lies_here(part)) return true;
  }
  return lies_here(value);
}

// A server must not make a client open its files.
void refuse_files(const json& config) {
  const auto visit = [&](const auto& self, const json& value, const std::string& key) -> void {
    const bool may = std::find(kMayNameFiles.begin(), kMayNameFiles.end(), key) != kMayNameFiles.end();
    if (may && value.is_string() && names_file(key, value.get_ref<const std::string&>())) {
      fail_user("the plan names a file of this machine as '{}': {}; it must not", key, value.get<std::string>());
    }
    if (!value.is_structured()) return;
    for (const auto& item : value.items()) self(self, item.value(), value.is_object() ? item.key() : key);
  };
  visit(visit, config, "");
}

const json& member(const json& object, const char* key, json::value_t type) {
  const auto found = object.find(key);
  if (found == object.end() ||
      (found->type() != type && !(type == json::value_t::number_float && found->is_number()))) {
    fail_user("the server's plan is damaged: '{}' is missing or of another type", key);
  }
  return *found;
}

settings::Section section_of(const json& value, const std::string& name) {
  return {value, name, std::make_shared<settings::Source>(settings::Source{.file = kSource, .line = {}})};
}

constexpr const char* kLocal = "local";
constexpr const char* kReleased = "released";
constexpr const char* kTestRecords = "test_records";

// Nothing if evaluation stays at home.
std::optional<EvaluationTerms> read_evaluation(settings::Section& serve, settings::Section& declared,
                                               const config::RunSpec& spec) {
  if (serve.one_of("evaluation", kLocal, {kLocal, kReleased}) == kLocal) return std::nullopt;
  const std::string why_not = why_no_evaluation(spec, methods::find_method(spec.method));
  if (!why_not.empty()) serve.fail("evaluation", "= \"released\" " + why_not);
  EvaluationTerms terms;
  terms.share = serve.number("evaluation_share", terms.share, settings::between(1e-3, 0.9));
  terms.records = static_cast<int64_t>(declared.required_number(kTestRecords, settings::between(1, 1e9), "40"));
  return terms;
}

ServeTerms read_terms(settings::Section& section, const config::RunSpec& spec, int64_t& most_participations) {
  ServeTerms terms;
  const int64_t cohort = methods::expected_cohort(spec);
  const bool secret = methods::hides_cohorts(spec.federation.sampling) && cohort < spec.data.clients;
  terms.quorum = section.integer("quorum", secret ? 0 : cohort, settings::between(0, static_cast<double>(cohort)));
  terms.deadline_seconds = section.number("deadline", terms.deadline_seconds, settings::between(1e-3, 1e7));
  most_participations =
      section.integer("most_participations", spec.rounds, settings::between(1, static_cast<double>(spec.rounds)));
  if (secret && most_participations < spec.rounds) {
    section.fail(
        "most_participations",
        "cannot be less than all rounds with cohorts that are drawn in secret: a cap would tell who was drawn");
  }
  section.finish();
  return terms;
}

}  // namespace

FederationPlan::FederationPlan(const config::RunSpec& spec, settings::Section declared,
                               std::optional<settings::Section> serve) {
  if (spec.most_rounds > 0) {
    fail_user("most_rounds is {}: a federation between machines cannot be extended; leave it out", spec.most_rounds);
  }
  const config::RunSpec shared = without_paths(spec);
  methods::PublicFacts facts = read_facts(declared, spec);
  settings::Section unsaid = section_of(json::object(), "serve");
  settings::Section& terms = serve ? *serve : unsaid;
  const auto evaluation = read_evaluation(terms, declared, spec);
  declared.finish();
  terms_ = read_terms(terms, spec, facts.most_participations);
  json stated = {{"version", kVersion},
                 {"config", shared.to_toml()},
                 {"declared", to_json(facts)},
                 {"serve",
                  {{"quorum", terms_.quorum},
                   {"deadline", terms_.deadline_seconds},
                   {"most_participations", facts.most_participations}}}};
  if (evaluation) {
    stated["declared"][kTestRecords] = evaluation->records;
    stated["serve"]["evaluation"] = kReleased;
    stated["serve"]["evaluation_share"] = evaluation->share;
  }
  text_ = stated.dump();
  refuse_files(settings::parse_toml(shared.to_toml(), kSource).value);
  finish(shared, std::move(facts), evaluation);
}

FederationPlan::FederationPlan(std::string text) : text_(std::move(text)) {
  if (text_.size() > kLongestPlan) fail_user("the server's plan has {} bytes, more than any plan needs", text_.size());
  const json value = json::parse(text_, nullptr, false);
  if (!value.is_object()) fail_user("the server's plan is damaged: it is no JSON");
  if (value.value("version", json()) != kVersion) {
    fail_user("the server's plan is of version {}, and this program reads {}; one of the two must be updated",
              value.value("version", json()).dump(), kVersion);
  }
  const auto config = member(value, "config", json::value_t::string).get<std::string>();
  refuse_files(settings::parse_toml(config, kSource).value);
  const config::RunSpec spec = config::parse_run_spec(config, kSource, {});
  json stated = member(value, "declared", json::value_t::object);
  if (spec.data.schema.declared && spec.data.features.empty()) {
    for (const char* key : {"kind", "shape", "classes", "feature_blocks"}) stated.erase(key);
  }
  settings::Section declared = section_of(stated, "declared");
  methods::PublicFacts facts = read_facts(declared, spec);
  settings::Section serve = section_of(member(value, "serve", json::value_t::object), "serve");
  const auto evaluation = read_evaluation(serve, declared, spec);
  declared.finish();
  terms_ = read_terms(serve, spec, facts.most_participations);
  finish(spec, std::move(facts), evaluation);
}

std::string FederationPlan::upload_key(int64_t client, int64_t round) const {
  return sha256(json::array({hash_, client, round, "upload"}).dump());
}

void FederationPlan::finish(const config::RunSpec& spec, methods::PublicFacts facts,
                            std::optional<EvaluationTerms> evaluation) {
  hash_ = sha256(text_);
  const auto most = static_cast<int32_t>(facts.most_participations);
  std::vector<int32_t> participations(static_cast<size_t>(spec.data.clients), most);
  setup_.emplace(spec, std::move(facts), std::move(participations), "", evaluation);
}

}  // namespace sotto::federation
