# A room of the house is one static library, routing_<room>, of all sources in its folder and the folders below.
#
#   routing_room(attention TORCH PLAIN routing/kmeans.cpp WITHOUT tools/.* LINKS ops)
#
# TORCH links libtorch; its sources take the one precompiled header and are compiled together, but for the PLAIN ones,
# which do not use torch: each alone and without it. WITHOUT are patterns of sources that belong to something else. LINKS
# names rooms above this one; the layering test checks the includes of every file against the order of rooms.
option(ROUTING_JOIN_SOURCES "Compile sources that use torch six at a time: a shorter cold build, a longer rebuild" ON)
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
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
  target_link_libraries(${target} PUBLIC OpenMP::OpenMP_CXX)
endfunction()

# For what computes little itself: there compiling takes longer than running. GCC 13 and later refuse a precompiled header
# of -O2 at -O1.
function(routing_compile_quickly target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
endfunction()

# Whatever a source is about, GCC spends three seconds on the templates of torch's headers.
function(routing_join_torch_sources target plain_sources)
  set_source_files_properties(${plain_sources} PROPERTIES SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${ROUTING_JOIN_SOURCES} UNITY_BUILD_BATCH_SIZE 6)
endfunction()

# The files below this folder that match, relative to it, without those that match a pattern of `without`.
function(routing_files_below result glob without)
  file(GLOB_RECURSE found RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${glob})
  foreach(pattern IN LISTS without)
    list(FILTER found EXCLUDE REGEX "^${pattern}$")
  endforeach()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

function(routing_room room)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH" "" "PLAIN;WITHOUT;LINKS")
  set(target routing_${room})
  routing_files_below(sources *.cpp "${arg_WITHOUT}")
  routing_files_below(headers *.h "${arg_WITHOUT}")
  list(TRANSFORM headers PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  add_library(${target} STATIC ${sources})
  add_library(routing::${room} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${room})
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/src FILES ${headers})
  routing_compile_options(${target})
  foreach(link IN LISTS arg_LINKS)
    target_link_libraries(${target} PUBLIC routing_${link})
  endforeach()
  if(arg_TORCH)
    routing_use_torch(${target})
    routing_join_torch_sources(${target} "${arg_PLAIN}")
  endif()
endfunction()

# Adds a source to the target whose `function`, declared in `header`, returns the names and texts of these files. A
# changed file makes it anew.
function(routing_embed_files target header function files)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${function}.cpp)
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake)
  list(JOIN files "," list)
  add_custom_command(OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -D OUTPUT=${source} -D HEADER=${header} -D FUNCTION=${function} -D FILES=${list} -P ${script}
    DEPENDS ${files} ${script}
    COMMENT "Embedding ${function}" VERBATIM)
  # Alone, so that clang-tidy, which runs before anything was built, need not read it.
  set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(${target} PRIVATE ${source})
endfunction()
