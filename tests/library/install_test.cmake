# Installs into a scratch prefix, looks at what was installed, builds examples/embed against it, and runs it on data of its own.
set(prefix ${BUILD}/install_test/prefix)
set(work ${BUILD}/install_test/work)
file(REMOVE_RECURSE ${prefix} ${work}/run ${work}/noisy ${work}/home)

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGV}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(expect pattern)
  if(NOT output MATCHES "${pattern}")
    message(FATAL_ERROR "no '${pattern}' in the output: ${output}")
  endif()
endfunction()

# Whether files below the prefix have a folder of this machine in them; `which` are grep's options.
function(expect_no_folders which)
  execute_process(COMMAND grep ${which} -e ${SOURCE} -e ${BUILD} ${prefix} OUTPUT_VARIABLE found)
  if(found)
    message(FATAL_ERROR "these name a folder of the machine that they were built on:\n${found}")
  endif()
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
run(${prefix}/bin/sotto --version)
run(${prefix}/bin/sotto list methods)  # not the launcher alone

# Five headers, and no others.
file(GLOB_RECURSE headers RELATIVE ${prefix}/include ${prefix}/include/*)
list(SORT headers)
set(expected sotto/accounting.h sotto/method.h sotto/privacy.h sotto/run.h sotto/sotto.h)
if(NOT headers STREQUAL expected)
  message(FATAL_ERROR "the installed headers are ${headers}, and should be ${expected}")
endif()

# In binaries, messages about broken invariants name source files; those that are built for others say them from `src` on.
expect_no_folders(-rIl)
if(HIDES_PATHS)
  expect_no_folders(-rl)
endif()

# The library shows what the headers declare, and nothing else of the engine.
file(GLOB_RECURSE library ${prefix}/libsotto.so)
run(nm -DC --defined-only ${library})
if(output MATCHES " [TWV] (sotto::(privacy|methods|federation|artifacts|models|data)::[^\n]*)")
  message(FATAL_ERROR "libsotto.so shows ${CMAKE_MATCH_1}")
endif()
expect(" T sotto::add_method")

run(${CMAKE_COMMAND} -S ${SOURCE}/examples/embed -B ${work} -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_CXX_COMPILER=${CXX}
    -DCMAKE_CXX_COMPILER_LAUNCHER=${CXX_LAUNCHER} -DCMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${work})

set(rows "a,b,label\n")
foreach(i RANGE 1 60)
  math(EXPR label "${i} % 2")
  math(EXPR a "${i} * 7 % 13 + ${label} * 20")
  math(EXPR b "${i} * 5 % 11")
  string(APPEND rows "${a},${b},${label}\n")
endforeach()
file(WRITE ${work}/table.csv "${rows}")
file(WRITE ${work}/config.toml
  "rounds = 3\n[data]\nname = \"custom\"\npath = \"${work}/table.csv\"\nschema = \"inferred\"\nclients = 3\n[model]\nname = \"logistic\"\n")
run(${work}/embed ${work}/config.toml ${work}/run method.name=server-momentum method.beta=0.3)
expect("plan: model, in-the-clear, once per participation")
expect("server-momentum: mean accuracy over clients: [01]\\.")
run(${work}/embed ${work}/config.toml ${work}/noisy method.name=noisy-updates privacy.epsilon=4 privacy.delta=1e-6
    privacy.adjacency=replace)
expect("plan: update, gaussian, 3 times")
expect("noisy-updates: mean accuracy over clients: [01]\\.")
run(${work}/guard ${work}/home)
expect("round 4: 2 tensors left, ε spent [0-9.]+ of 2")
expect("refused: ")
expect("ledger: 4 rows, chain intact")

# Without CMake.
find_program(PKG_CONFIG NAMES pkg-config pkgconf)
if(PKG_CONFIG)
  file(GLOB_RECURSE description ${prefix}/sotto.pc)
  get_filename_component(folder ${description} DIRECTORY)
  set(ENV{PKG_CONFIG_PATH} ${folder})
  file(WRITE ${work}/tiny.cc "#include <sotto/accounting.h>\n#include <cstdio>\nint main() { std::printf(\"%s %.3f\\n\", sotto::version(), \
sotto::epsilon_of({{.noise_multiplier = 1.0, .sampling_rate = 0.01, .count = 100}}, 1e-5)); }\n")
  run(${PKG_CONFIG} --variable=libdir sotto)
  string(STRIP "${output}" libdir)
  run(sh -c "${CXX} -std=c++20 ${work}/tiny.cc -o ${work}/tiny $(${PKG_CONFIG} --cflags --libs sotto) -Wl,-rpath,${libdir}")
  run(${work}/tiny)
  expect("^0\\.[0-9]+\\.[0-9]+ 0\\.[0-9]+")
endif()
