# `cmake --install` gives the program, the public headers and a CMake package: find_package(sotto) → sotto::artifacts, sotto::data, …
include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY SOTTO_LIBRARIES)
install(TARGETS ${libraries} sotto_options sotto_torch EXPORT sotto_targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS sotto RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS sotto_engine RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/sotto)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/src/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sotto
        FILES_MATCHING PATTERN "*.h" PATTERN "cli" EXCLUDE PATTERN "access.h" EXCLUDE PATTERN "precompiled.h" EXCLUDE)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/examples/ DESTINATION ${CMAKE_INSTALL_DATADIR}/sotto/examples FILES_MATCHING PATTERN "*.toml")

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/sotto)
install(EXPORT sotto_targets NAMESPACE sotto:: DESTINATION ${package_folder} FILE sottoTargets.cmake)
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/sottoConfig.cmake.in ${CMAKE_BINARY_DIR}/sottoConfig.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/sottoConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/sottoConfig.cmake ${CMAKE_BINARY_DIR}/sottoConfigVersion.cmake DESTINATION ${package_folder})
