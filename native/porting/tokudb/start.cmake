# PerconaFT outside of MariaDB's tree: `cmake -C start.cmake`. What it builds, and what the server's
# own build would have given it.
set(CMAKE_BUILD_TYPE Release CACHE STRING "")
set(BUILD_TESTING OFF CACHE BOOL "")
set(USE_VALGRIND OFF CACHE BOOL "")
set(PROFILING OFF CACHE BOOL "")  # it means frame pointers only

set(CMAKE_PROJECT_TokuDB_INCLUDE ${CMAKE_CURRENT_LIST_DIR}/macros.cmake CACHE FILEPATH "")

# -w -fpermissive: the tree is older than the compiler. Its own flags are -O3 -flto with assertions.
set(CMAKE_C_FLAGS "-w" CACHE STRING "")
set(CMAKE_CXX_FLAGS "-w -fpermissive -isystem ${CMAKE_CURRENT_LIST_DIR}" CACHE STRING "")
set(CMAKE_C_FLAGS_RELEASE "-g0" CACHE STRING "")
set(CMAKE_CXX_FLAGS_RELEASE "-g0" CACHE STRING "")

# The sub-build of snappy gets the compiler as one word: "ccache gcc" is taken apart.
foreach(language IN ITEMS C CXX)
  string(REGEX REPLACE "^C$" "CC" variable ${language})
  if("$ENV{${variable}}" MATCHES "^ccache (.+)$")
    set(CMAKE_${language}_COMPILER ${CMAKE_MATCH_1} CACHE STRING "")
    set(CMAKE_${language}_COMPILER_LAUNCHER ccache CACHE STRING "")
  endif()
endforeach()
