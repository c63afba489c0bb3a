# sotto_web_page(OUTPUT_VARIABLE): bundles web/ into one C++ source file, at build time. Packages are fetched once per package-lock.json,
# into the build folder; npm's own cache serves further build folders without a network.
find_program(SOTTO_NPM npm)
find_program(SOTTO_NODE NAMES node nodejs)
if(NOT SOTTO_NPM OR NOT SOTTO_NODE)
  message(FATAL_ERROR "npm and node are needed to bundle the page of `sotto report`: run scripts/setup.sh")
endif()

function(sotto_web_page output)
  set(web ${CMAKE_SOURCE_DIR}/web)
  set(built ${CMAKE_BINARY_DIR}/web)
  file(GLOB sources CONFIGURE_DEPENDS ${web}/src/*)
  add_custom_command(
    OUTPUT ${built}/packages.stamp
    COMMAND ${CMAKE_COMMAND} -DNPM=${SOTTO_NPM} -DFROM=${web} -DTO=${built} -P ${CMAKE_SOURCE_DIR}/cmake/InstallPackages.cmake
    DEPENDS ${web}/package.json ${web}/package-lock.json ${CMAKE_SOURCE_DIR}/cmake/InstallPackages.cmake
    COMMENT "Fetching the page's packages from npm" VERBATIM)
  add_custom_command(
    OUTPUT ${built}/page_shell.cc
    COMMAND ${SOTTO_NODE} ${web}/bundle.mjs ${built}
    DEPENDS ${built}/packages.stamp ${web}/bundle.mjs ${sources}
    COMMENT "Bundling the page" VERBATIM)
  set_source_files_properties(${built}/page_shell.cc PROPERTIES COMPILE_OPTIONS -Wno-overlength-strings SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
  set(${output} ${built}/page_shell.cc PARENT_SCOPE)
endfunction()
