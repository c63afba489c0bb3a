# sotto_library(NAME SOURCES … DEPS … LIBS … UNITY n ALONE …)
#   One folder of src/ as one static library. DEPS are other Sotto folders (the dependency order is checked by
#   scripts/lint.sh), LIBS third-party targets. NO_TORCH leaves libtorch and the precompiled header out. UNITY compiles n
#   sources at a time, which saves loading the header (two seconds) for each; sources whose local names clash stand ALONE.

add_library(sotto_options INTERFACE)
target_include_directories(sotto_options INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_features(sotto_options INTERFACE cxx_std_20)

set(SOTTO_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wextra-semi
    # gcc 12 sees uninitialised strings where there are none
    -Wno-maybe-uninitialized)
if(SOTTO_WERROR)
  list(APPEND SOTTO_WARNINGS -Werror)
endif()
if(SOTTO_SANITIZE)
  add_compile_options(-fsanitize=${SOTTO_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${SOTTO_SANITIZE})
endif()

# sotto_pch(NAME HEADER OPTIONS…): a precompiled header for many targets. ccache knows it by a small checksum beside it
# instead of its hundreds of megabytes.
file(WRITE ${CMAKE_BINARY_DIR}/pch.cc "")
function(sotto_pch name header)
  add_library(${name} STATIC ${CMAKE_BINARY_DIR}/pch.cc)
  target_link_libraries(${name} PUBLIC sotto_options sotto_torch fmt::fmt)
  target_precompile_headers(${name} PRIVATE ${header})
  target_compile_options(${name} PRIVATE ${SOTTO_WARNINGS} ${ARGN})
  file(READ ${header} text)
  file(READ ${CMAKE_SOURCE_DIR}/src/precompiled.h base_text)
  string(SHA256 sum "${text} ${base_text} ${ARGN} ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_BUILD_TYPE} \
${CMAKE_CXX_FLAGS} ${SOTTO_SANITIZE} ${SOTTO_WARNINGS} ${Torch_VERSION} ${TORCH_CXX_FLAGS} ${fmt_VERSION}")
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/CMakeFiles/${name}.dir/cmake_pch.hxx.gch.sum CONTENT "${sum}")
endfunction()

# libtorch's tensors and modules, JSON and fmt.
sotto_pch(sotto_pch ${CMAKE_SOURCE_DIR}/src/precompiled.h)

# sotto_use_pch(TARGET PCH OPTIONS…): the options must be those that the header was compiled with.
function(sotto_use_pch target pch)
  target_link_libraries(${target} PRIVATE sotto_torch)
  target_compile_options(${target} PRIVATE ${SOTTO_WARNINGS} ${ARGN})
  target_precompile_headers(${target} REUSE_FROM ${pch})
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    # The header was compiled with -fPIC; gcc refuses it under -fPIE.
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
endfunction()

# sotto_compile_together(TARGET N): sources of the folder are compiled N at a time, but for those that SKIP_UNITY_BUILD_INCLUSION.
# CMake's own unity sources name absolute paths, so that another checkout would find nothing of theirs in the compiler's cache.
# What stands in the folder's list after this call counts, too.
function(sotto_compile_together target n)
  cmake_language(EVAL CODE "cmake_language(DEFER CALL sotto_write_unity_sources ${target} ${n})")
endfunction()

function(sotto_write_unity_sources target n)
  file(RELATIVE_PATH folder ${CMAKE_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR})
  get_target_property(sources ${target} SOURCES)
  set(together "")
  foreach(source ${sources})
    get_source_file_property(alone ${source} SKIP_UNITY_BUILD_INCLUSION)
    if(source MATCHES "\\.cc$" AND NOT IS_ABSOLUTE ${source} AND NOT alone)
      list(APPEND together ${source})
    endif()
  endforeach()
  set_source_files_properties(${together} PROPERTIES HEADER_FILE_ONLY ON)
  set(batch 0)
  while(together)
    list(SUBLIST together 0 ${n} now)
    list(REMOVE_ITEM together ${now})
    list(TRANSFORM now REPLACE "(.+)" "#include \"${folder}/\\1\"\n" OUTPUT_VARIABLE lines)
    string(JOIN "" text ${lines})
    set(file ${CMAKE_CURRENT_BINARY_DIR}/together/${target}_${batch}.cc)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
    target_sources(${target} PRIVATE ${file})
    math(EXPR batch "${batch} + 1")
  endwhile()
endfunction()

function(sotto_library name)
  cmake_parse_arguments(ARG "NO_TORCH" "UNITY" "SOURCES;DEPS;LIBS;ALONE" ${ARGN})
  set(target sotto_${name})
  add_library(${target} STATIC ${ARG_SOURCES})
  add_library(sotto::${name} ALIAS ${target})
  target_link_libraries(${target} PUBLIC sotto_options fmt::fmt)
  foreach(dep ${ARG_DEPS})
    target_link_libraries(${target} PUBLIC sotto_${dep})
  endforeach()
  target_link_libraries(${target} PRIVATE ${ARG_LIBS})
  if(SOTTO_FUZZ AND name IN_LIST SOTTO_DECODERS)
    sotto_cover(${target})
  endif()
  if(ARG_NO_TORCH)
    target_compile_options(${target} PRIVATE ${SOTTO_WARNINGS})
  else()
    target_link_libraries(${target} PUBLIC sotto_torch)
    sotto_use_pch(${target} sotto_pch)
  endif()
  if(ARG_UNITY)
    set_source_files_properties(${ARG_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    sotto_compile_together(${target} ${ARG_UNITY})
  endif()
endfunction()
