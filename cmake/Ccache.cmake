# Compile through ccache where it is installed. The sloppiness settings are what ccache needs to reuse results that went through a
# precompiled header; the header is known by a small checksum file beside it (SottoTargets.cmake) instead of its hundreds of megabytes.
# Depend mode takes what a file includes from the compiler itself, which saves preprocessing it first.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime CCACHE_DEPEND=1
      CCACHE_PCH_EXTSUM=1 CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_MAXSIZE=10G ${CCACHE_PROGRAM})
endif()
