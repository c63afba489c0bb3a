# sotto_library(NAME SOURCES … DEPS … LIBS …)
#   One folder of src/ as one static library. DEPS are other Sotto folders (the dependency order is checked by
#   scripts/lint.sh), LIBS third-party targets. NO_TORCH leaves libtorch and the precompiled header out.

add_library(sotto_options INTERFACE)
target_include_directories(sotto_options INTERFACE
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/src> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/sotto>)
target_compile_features(sotto_options INTERFACE cxx_std_20)

set(SOTTO_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wextra-semi
    # gcc 12 sees uninitialised strings where there are none
    -Wno-maybe-uninitialized)
if(SOTTO_WERROR)
  list(APPEND SOTTO_WARNINGS -Werror)
endif()
if(SOTTO_SANITIZE)
  add_compile_options(-fsanitize=${SOTTO_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${SOTTO_SANITIZE})
endif()

# The one precompiled header: libtorch's tensors and modules, JSON and fmt.
file(WRITE ${CMAKE_BINARY_DIR}/pch.cc "")
add_library(sotto_pch STATIC ${CMAKE_BINARY_DIR}/pch.cc)
target_link_libraries(sotto_pch PUBLIC sotto_options sotto_torch fmt::fmt)
target_precompile_headers(sotto_pch PRIVATE ${CMAKE_SOURCE_DIR}/src/precompiled.h)
target_compile_options(sotto_pch PRIVATE ${SOTTO_WARNINGS} -fpch-preprocess)

file(READ ${CMAKE_SOURCE_DIR}/src/precompiled.h pch_text)
string(SHA256 pch_sum "${pch_text} ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_BUILD_TYPE} ${CMAKE_CXX_FLAGS} \
${SOTTO_SANITIZE} ${SOTTO_WARNINGS} ${Torch_VERSION} ${TORCH_CXX_FLAGS} ${fmt_VERSION}")
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/CMakeFiles/sotto_pch.dir/cmake_pch.hxx.gch.sum CONTENT "${pch_sum}")

function(sotto_use_pch target)
  target_link_libraries(${target} PRIVATE sotto_torch)
  target_compile_options(${target} PRIVATE ${SOTTO_WARNINGS} -fpch-preprocess)
  target_precompile_headers(${target} REUSE_FROM sotto_pch)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    # The header was compiled with -fPIC; gcc refuses it under -fPIE.
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
endfunction()

function(sotto_library name)
  cmake_parse_arguments(ARG "NO_TORCH" "" "SOURCES;DEPS;LIBS" ${ARGN})
  set(target sotto_${name})
  add_library(${target} STATIC ${ARG_SOURCES})
  add_library(sotto::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_link_libraries(${target} PUBLIC sotto_options fmt::fmt)
  foreach(dep ${ARG_DEPS})
    target_link_libraries(${target} PUBLIC sotto_${dep})
  endforeach()
  target_link_libraries(${target} PRIVATE ${ARG_LIBS})
  if(ARG_NO_TORCH)
    target_compile_options(${target} PRIVATE ${SOTTO_WARNINGS})
  else()
    target_link_libraries(${target} PUBLIC sotto_torch)
    sotto_use_pch(${target})
  endif()
  set_property(GLOBAL APPEND PROPERTY SOTTO_LIBRARIES ${target})
endfunction()
