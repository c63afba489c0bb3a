// What the package `sotto` (python/sotto) is made of: questions and answers as JSON, runs, and guards with arrays.
//
// Work goes on in a thread of its own without the interpreter's lock, while the calling thread looks for Ctrl-C.
#include "artifacts/metrics.h"
#include "artifacts/summary.h"
#include "base/allocator.h"
#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "cli/account_query.h"
#include "cli/config_options.h"
#include "cli/program.h"
#include "federation/home_terms.h"
#include "privacy/guard.h"
#include "privacy/home.h"
#include "run/config_source.h"
#include "run/execute.h"
#include "settings/section.h"
#include "settings/toml.h"

#include <ATen/ops/from_blob.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace sotto {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

// `work` in a thread. After Ctrl-C it is asked to stop, and KeyboardInterrupt comes when it has.
template <typename Work>
auto interruptibly(Work work) {
  std::optional<py::error_already_set> signal;
  std::packaged_task<decltype(work())()> task(std::move(work));
  auto result = task.get_future();
  {
    const py::gil_scoped_release released;
    std::thread thread(std::move(task));
    while (result.wait_for(50ms) != std::future_status::ready) {
      const py::gil_scoped_acquire acquired;
      if (signal || PyErr_CheckSignals() == 0) continue;
      signal.emplace();
      request_interrupt(true);
    }
    thread.join();
  }
  request_interrupt(false);
  if (signal) throw *signal;
  return result.get();
}

// As it is while the object lives.
class Quiet {
 public:
  explicit Quiet(bool quiet) : before_(log_level()) {
    if (quiet) set_log_level(LogLevel::kQuiet);
  }
  ~Quiet() { set_log_level(before_); }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  LogLevel before_;
};

std::string account(const std::string& question) {
  const py::gil_scoped_release released;
  return cli::answer(cli::parse_account_query(json::parse(question))).dump();
}

std::string calibrate(const std::string& question) {
  const py::gil_scoped_release released;
  return cli::answer(cli::parse_calibrate_query(json::parse(question))).dump();
}

std::string command(const std::vector<std::string>& arguments) {
  return interruptibly([&] { return cli::output_of(arguments); });
}

struct RunRequest {
  run::ConfigSource config;
  std::string folder;
  std::string home;
  bool resume = false;
  int threads = 0;
  bool quiet = false;
};

using RoundListener = std::function<void(const std::string&)>;

// {folder, summary}
std::string execute(const RunRequest& request, const RoundListener& on_round) {
  const Quiet quiet(request.quiet);
  const config::RunSpec spec = run::load_spec(request.config);
  const fs::path folder =
      request.folder.empty() ? run::default_run_folder(request.config, spec) : fs::path(request.folder);
  if (!request.resume) artifacts::require_new(folder);
  const federation::Setup setup(spec);
  std::optional<privacy::Home> home;
  if (!request.home.empty()) home.emplace(request.home, federation::home_records(setup));
  run::Run rounds(setup, {.folder = folder,
                          .resume = request.resume,
                          .threads = cli::resolve_threads(request.threads),
                          .home = home ? &*home : nullptr});
  while (const auto record = rounds.next_round()) {
    if (on_round) on_round(artifacts::to_json(*record).dump());
  }
  if (!rounds.finished()) throw Interrupted(fmt::format("stopped; run {} again with resume=True", folder.string()));
  return json{{"folder", folder.string()}, {"summary", artifacts::summary_document(rounds.finish())}}.dump();
}

std::string run_config(const std::string& config, const std::vector<std::string>& overrides, const std::string& folder,
                       const std::string& home, bool resume, int threads, bool quiet, const py::object& on_round) {
  const RunRequest request = {{config, overrides}, folder, home, resume, threads, quiet};
  RoundListener listener;
  if (!on_round.is_none()) {
    listener = [&](const std::string& line) {
      const py::gil_scoped_acquire acquired;
      on_round(line);
    };
  }
  return interruptibly([&] { return execute(request, listener); });
}

// Shares the array's memory, which is contiguous float32 or float64 (guard.py sees to it).
at::Tensor tensor_of(const py::array& array) {
  const at::ScalarType type = py::isinstance<py::array_t<double>>(array) ? at::kDouble : at::kFloat;
  SOTTO_INVARIANT(type == at::kDouble || py::isinstance<py::array_t<float>>(array));
  SOTTO_INVARIANT((array.flags() & py::array::c_style) != 0);
  const std::vector<int64_t> shape(array.shape(), array.shape() + array.ndim());
  return at::from_blob(const_cast<void*>(array.data()), shape, at::TensorOptions().dtype(type));
}

// Shares the tensor's memory, which lives as long as the array.
py::array array_of(const at::Tensor& tensor) {
  auto* owner = new at::Tensor(tensor.contiguous());
  const py::capsule keeper(owner, [](void* kept) { delete static_cast<at::Tensor*>(kept); });
  return py::array_t<float>(owner->sizes().vec(), owner->data_ptr<float>(), keeper);
}

// A promise as a dictionary (JSON), or as a file: budget.toml, or the table [budget] of policy.toml.
settings::Section promise_of(const std::string& policy, bool is_file) {
  if (!is_file) {
    return {json::parse(policy), "",
            std::make_shared<settings::Source>(settings::Source{.file = "policy", .line = {}})};
  }
  settings::ParsedToml parsed = settings::parse_toml(read_file(policy), policy);
  settings::Section whole(std::move(parsed.value), "", parsed.source);
  return whole.has("budget") ? whole.child("budget") : whole;
}

class PythonGuard {
 public:
  PythonGuard(const std::string& home, const std::string& records) : guard_(home, records) {}

  py::dict release(const std::string& what, const std::vector<std::pair<std::string, py::array>>& arrays,
                   const std::string& key, double bound, double noise_multiplier, bool per_record, double divisor) {
    NamedTensors values;
    for (const auto& [name, array] : arrays) values.push_back({name, tensor_of(array)});
    NamedTensors released;
    {
      const py::gil_scoped_release without_lock;
      released = guard_.release({what, key, bound, noise_multiplier, per_record, divisor}, values);
    }
    py::dict result;
    for (const auto& [name, array] : arrays) result[py::str(name)] = array_of(find_tensor(released, name));
    return result;
  }
  double multiplier_for(double epsilon) const {
    const py::gil_scoped_release released;
    return guard_.multiplier_for(epsilon);
  }
  double spent() const {
    const py::gil_scoped_release released;
    return guard_.spent();
  }
  double budget() const { return guard_.budget(); }
  int64_t releases() const {
    const py::gil_scoped_release released;
    return guard_.releases();
  }

 private:
  privacy::Guard guard_;
};

}  // namespace
}  // namespace sotto

PYBIND11_MODULE(_engine, module) {
  using namespace sotto;
  keep_freed_memory();
  leave_signals_alone();

  static py::exception<UserError> error(module, "Error", PyExc_ValueError);
  static py::exception<privacy::BudgetSpent> spent(module, "BudgetSpent", error.ptr());
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const privacy::BudgetSpent& refused) {
      spent(refused.what());
    } catch (const UserError& mistake) {
      error(mistake.what());
    } catch (const fs::filesystem_error& failure) {
      error(fmt::format("{}: {}", failure.path1().string(), failure.code().message()).c_str());
    } catch (const Interrupted& stop) {
      PyErr_SetString(PyExc_KeyboardInterrupt, stop.what());
    }
  });

  module.def("account", &account);
  module.def("calibrate", &calibrate);
  module.def("command", &command);
  module.def("run", &run_config);
  module.def("promise", [](const std::string& home, const std::string& policy, bool is_file) {
    privacy::Home::promise(home, promise_of(policy, is_file));
  });
  module.attr("__version__") = SOTTO_VERSION;

  py::class_<PythonGuard>(module, "Guard")
      .def(py::init<const std::string&, const std::string&>(), py::call_guard<py::gil_scoped_release>())
      .def("release", &PythonGuard::release)
      .def("multiplier_for", &PythonGuard::multiplier_for)
      .def_property_readonly("spent", &PythonGuard::spent)
      .def_property_readonly("budget", &PythonGuard::budget)
      .def_property_readonly("releases", &PythonGuard::releases);
}
