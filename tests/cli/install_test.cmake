# Installs into a scratch prefix, builds examples/embed against it, and runs it on data of its own.
set(prefix ${BUILD}/install_test/prefix)
set(work ${BUILD}/install_test/work)
file(REMOVE_RECURSE ${work}/run)

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGV}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
run(${prefix}/bin/sotto --version)
run(${prefix}/bin/sotto list methods)  # not the launcher alone
run(${CMAKE_COMMAND} -S ${EXAMPLE} -B ${work} -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_CXX_COMPILER_LAUNCHER=${CXX_LAUNCHER}
    -DCMAKE_BUILD_TYPE=Release)
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
  "rounds = 3\n[data]\nname = \"custom\"\npath = \"${work}/table.csv\"\nclients = 3\n[model]\nname = \"logistic\"\n")
run(${work}/embed ${work}/config.toml ${work}/run)
if(NOT output MATCHES "mean accuracy over clients: [01]\\.")
  message(FATAL_ERROR "unexpected output: ${output}")
endif()
