# `cpack` gives Debian packages (scripts/package.sh builds and tries them):
#   sotto           the program
#   sotto-mpi       what it needs for one federation over several machines
#   libsotto0.1     libsotto
#   libsotto-dev    headers, CMake package, pkg-config file
#   python3-sotto   the Python package
# What they depend on is what their binaries are linked with (dpkg-shlibdeps).
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME sotto)
set(CPACK_PACKAGE_VENDOR "Sotto")
set(CPACK_PACKAGE_CONTACT "Sotto developers <sotto@localhost>")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL program library dev)
if(SOTTO_WITH_MPI)
  list(APPEND CPACK_COMPONENTS_ALL mpi)
endif()
if(TARGET sotto_python)
  list(APPEND CPACK_COMPONENTS_ALL python)
endif()

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(library libsotto${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(same_version "(= ${PROJECT_VERSION})")

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME sotto)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "${PROJECT_DESCRIPTION}
 Simulates federations of clients that keep their records to themselves, runs them between machines, and keeps a ledger of
 everything that leaves a client.")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS "libopenblas0-openmp")

set(CPACK_DEBIAN_MPI_PACKAGE_NAME sotto-mpi)
set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "sotto ${same_version}")
set(CPACK_COMPONENT_MPI_DESCRIPTION "${PROJECT_DESCRIPTION}: federations over the ranks of an MPI job")

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME ${library})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "${PROJECT_DESCRIPTION}: the library")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libsotto-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "${library} ${same_version}, libtorch-dev")
set(CPACK_DEBIAN_DEV_PACKAGE_SHLIBDEPS OFF)
set(CPACK_COMPONENT_DEV_DESCRIPTION "${PROJECT_DESCRIPTION}: headers for programs of one's own")

set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-sotto)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3 (>= ${SOTTO_PYTHON_VERSION}), python3 (<< ${SOTTO_NEXT_PYTHON_VERSION}), python3-numpy")
set(CPACK_COMPONENT_PYTHON_DESCRIPTION "${PROJECT_DESCRIPTION}: the Python package")
include(CPack)
