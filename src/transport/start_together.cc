#include "transport/start_together.h"

#include "base/error.h"
#include "base/files.h"
#include "base/launch.h"
#include "base/log.h"
#include "models/task_data.h"
#include "settings/toml.h"

#include <ATen/ATen.h>

#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>

namespace sotto::transport {
namespace {

using nlohmann::json;

constexpr int64_t kSampledRecords = 4096;

// Parts of a note begin at multiples of four.
size_t padded(size_t length) {
  return (length + 3) / 4 * 4;
}

// The linker's name for the running program: another for every build.
std::string build_id() {
  std::string id;
  const auto look = [](dl_phdr_info* info, size_t, void* found) {
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const ElfW(Phdr)& part = info->dlpi_phdr[i];
      if (part.p_type != PT_NOTE) continue;
      const char* at = reinterpret_cast<const char*>(info->dlpi_addr + part.p_vaddr);
      const char* end = at + part.p_memsz;
      while (at + sizeof(ElfW(Nhdr)) <= end) {
        ElfW(Nhdr) note;
        std::memcpy(&note, at, sizeof(note));
        const char* name = at + sizeof(note);
        const char* content = name + padded(note.n_namesz);
        if (note.n_type == NT_GNU_BUILD_ID && std::string_view(name, 3) == "GNU") {
          for (const char* byte = content; byte < content + note.n_descsz; ++byte) {
            *static_cast<std::string*>(found) += fmt::format("{:02x}", static_cast<unsigned char>(*byte));
          }
          return 1;
        }
        at = content + padded(note.n_descsz);
      }
    }
    return 1;  // the program comes first; libraries are not asked
  };
  ::dl_iterate_phdr(look, &id);
  return id.empty() ? sha256_of_file("/proc/self/exe") : id;
}

std::string instructions() {
  if (__builtin_cpu_supports("avx512f") != 0) return "AVX-512";
  return __builtin_cpu_supports("avx2") != 0 ? "AVX2" : "SSE";
}

// Of a sample that is spread over all of them, and of all labels; some datasets have no test records of their own.
std::string fingerprint(const data::Records& records) {
  if (!records.x.defined()) return "none";
  const int64_t count = records.size();
  const int64_t step = std::max<int64_t>(1, count / kSampledRecords);
  const at::Tensor rows = at::arange(0, count, step, at::kLong);
  const auto bytes_of = [](const at::Tensor& value) {
    const at::Tensor packed = value.contiguous();
    return sha256({static_cast<const char*>(packed.data_ptr()), packed.nbytes()});
  };
  return sha256(fmt::format("{} {} {} {}", count, bytes_of(records.x.index_select(0, rows)), bytes_of(records.y),
                            records.domain.defined() ? bytes_of(records.domain) : ""));
}

// Of the files that are named somewhere in these settings.
std::string contents_of_files(const json& settings) {
  if (settings.is_string()) {
    std::error_code error;
    const fs::path path = settings.get<std::string>();
    return fs::is_regular_file(path, error) ? sha256_of_file(path) : "";
  }
  std::string contents;
  if (!settings.is_structured()) return contents;
  for (const json& value : settings) contents += contents_of_files(value);
  return contents;
}

// What a run reads besides its records: archives of models, curves, public datasets.
std::string fingerprint_of_the_rest(const federation::Setup& setup) {
  const config::RunSpec& spec = setup.spec();
  std::string contents = contents_of_files(settings::parse_toml(spec.to_toml(), "the settings").value);
  if (setup.method().public_data) {
    for (const data::DataOptions& data : setup.method().public_data(spec)) {
      contents += fingerprint(models::load_task_data(data, spec.model, spec.seed).dataset.train);
    }
  }
  return sha256(contents);
}

json description(const federation::Setup& setup) {
  return {{"program", build_id()},
          {"settings", setup.spec().hash()},
          {"records", fingerprint(setup.dataset().train) + fingerprint(setup.dataset().test)},
          {"files", fingerprint_of_the_rest(setup)},
          {"instructions", instructions()}};
}

// Why this rank cannot take part beside rank 0; "" if it can.
std::string objection(const json& mine, const json& theirs) {
  if (theirs.contains("failure")) return theirs.at("failure");
  if (theirs.at("program") != mine.at("program")) return "it runs another build of sotto; install the same everywhere";
  if (theirs.at("settings") != mine.at("settings")) return "it read another config; put the same file on every machine";
  if (theirs.at("records") != mine.at("records")) return "it has other records; install the same data on every machine";
  if (theirs.at("files") != mine.at("files")) {
    return "files that the config names, or its public data, are others there; put the same on every machine";
  }
  return "";
}

}  // namespace

std::optional<federation::Setup> start_together(Ranks& ranks, const std::function<federation::Setup()>& make) {
  std::optional<federation::Setup> setup;
  json mine;
  try {
    setup = make();
    mine = description(*setup);
  } catch (const UserError& error) {
    mine = {{"failure", error.what()}};
  }
  std::string refusal = mine.value("failure", "");
  mine["host"] = host_name();
  if (ranks.rank() > 0) ranks.send(0, mine.dump());
  for (int rank = 1; ranks.rank() == 0 && rank < ranks.size(); ++rank) {
    const json theirs = json::parse(ranks.receive(rank));
    if (!refusal.empty()) continue;
    const std::string host = theirs.at("host");
    refusal = objection(mine, theirs);
    if (!refusal.empty()) {
      refusal = fmt::format("rank {} on {} cannot take part: {}", rank, host, refusal);
    } else if (theirs.at("instructions") != mine.at("instructions")) {
      warn(
          "rank {} on {} computes with {} and rank 0 with {}: results may differ from those of one machine in their "
          "last bits",
          rank, host, theirs.at("instructions").get<std::string>(), mine.at("instructions").get<std::string>());
    }
  }
  std::string verdict = refusal;
  ranks.broadcast(verdict);
  if (verdict.empty()) return setup;
  ranks.finish();
  if (ranks.rank() == 0) throw UserError(refusal);
  return std::nullopt;
}

}  // namespace sotto::transport
