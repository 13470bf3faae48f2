# A room of the house is one static library, routing_<room>, from src/routing/<room>.
#
#   routing_room(attention TORCH SOURCES a.cpp b.cpp HEADERS a.h b.h LINKS ops)
#
# TORCH links libtorch and takes the one precompiled header. LINKS names rooms above this one; the layering test checks
# the includes of every file against the order of rooms.
set(ROUTING_WARNINGS -Wall -Wextra -Wshadow -Wconversion -Werror)

# Torch's own target carries its include folders and definitions; -Wno-psabi silences GCC's notes on vector ABIs in them.
function(routing_use_torch target)
  target_link_libraries(${target} PUBLIC ${TORCH_LIBRARIES})
  target_include_directories(${target} SYSTEM PUBLIC ${TORCH_INCLUDE_DIRS})
  if(NOT target STREQUAL "routing_torch_pch" AND NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
    target_precompile_headers(${target} REUSE_FROM routing_torch_pch)
  endif()
endfunction()

# Every target that reuses the precompiled header must be compiled with the very same options.
function(routing_compile_options target)
  target_compile_options(${target} PRIVATE ${ROUTING_WARNINGS})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${target} PUBLIC OpenMP::OpenMP_CXX)
endfunction()

function(routing_room room)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH" "" "SOURCES;HEADERS;LINKS")
  set(target routing_${room})
  list(TRANSFORM arg_HEADERS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  add_library(${target} STATIC ${arg_SOURCES})
  add_library(routing::${room} ALIAS ${target})
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/src FILES ${arg_HEADERS})
  routing_compile_options(${target})
  foreach(link IN LISTS arg_LINKS)
    target_link_libraries(${target} PUBLIC routing_${link})
  endforeach()
  if(arg_TORCH)
    routing_use_torch(${target})
  endif()
endfunction()
