# `cmake --install` gives, as components that can be had one by one:
#   program   sotto, and the examples' configs
#   mpi       what sotto needs for one federation over several machines
#   library   libsotto
#   dev       the public headers, a CMake package and a pkg-config file: find_package(sotto) → sotto::sotto
#   python    the Python package (python/CMakeLists.txt)
# Nothing that is installed names a folder of the machine that it was built on.
include(CMakePackageConfigHelpers)

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME program)
install(TARGETS sotto RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
install(TARGETS sotto_engine RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/sotto COMPONENT program)
if(SOTTO_WITH_MPI)
  install(TARGETS sotto_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/sotto COMPONENT mpi)
endif()
install(DIRECTORY ${CMAKE_SOURCE_DIR}/examples/ DESTINATION ${CMAKE_INSTALL_DATADIR}/sotto/examples COMPONENT program
        FILES_MATCHING PATTERN "*.toml" PATTERN "*.sbatch")

install(TARGETS sotto_shared EXPORT sotto_targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT dev)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/sotto DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/sotto)
install(EXPORT sotto_targets NAMESPACE sotto:: DESTINATION ${package_folder} FILE sottoTargets.cmake COMPONENT dev)
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/sottoConfig.cmake.in ${CMAKE_BINARY_DIR}/sottoConfig.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/sottoConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/sottoConfig.cmake ${CMAKE_BINARY_DIR}/sottoConfigVersion.cmake
        DESTINATION ${package_folder} COMPONENT dev)

# Where the file lies says where the rest is.
file(RELATIVE_PATH to_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(${CMAKE_SOURCE_DIR}/cmake/sotto.pc.in ${CMAKE_BINARY_DIR}/sotto.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/sotto.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
