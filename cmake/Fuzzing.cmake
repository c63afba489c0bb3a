# Fuzzers that see what an input reaches: -DSOTTO_FUZZ=ON, part of the preset `asan`.
#   gcc calls a function at every branch and comparison of the folders below; coverage.cc counts those calls where libFuzzer looks.
#   Programs that are no fuzzers get the same counters, and nobody looks at them.

# Folders that read bytes from outside.
set(SOTTO_DECODERS base io settings data models privacy net config federation artifacts member)

if(SOTTO_FUZZ)
  add_library(sotto_coverage STATIC ${CMAKE_SOURCE_DIR}/tests/fuzz/coverage.cc)
  target_compile_options(sotto_coverage PRIVATE -O2 -fno-sanitize=all)
  # It comes with clang; its version need not be that of anything else.
  file(GLOB libfuzzers /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer_no_main-x86_64.a
       /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer_no_main-aarch64.a)
  list(SORT libfuzzers COMPARE NATURAL ORDER DESCENDING)
  if(libfuzzers)
    list(GET libfuzzers 0 found)
  endif()
  set(SOTTO_LIBFUZZER "${found}" CACHE FILEPATH "libFuzzer without its main; empty: fuzzers use the driver of tests/fuzz")
endif()

function(sotto_cover target)
  target_compile_options(${target} PRIVATE -fsanitize-coverage=trace-pc,trace-cmp)
  target_link_libraries(${target} PUBLIC sotto_coverage)
endfunction()
