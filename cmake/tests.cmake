# routing_tests(ops TORCH LINKS test_support)
#
# All files tests/<room>/**/*_test.cpp become one program, <room>_tests, so that one link serves them all. Each of them
# has a namespace of its own, routing::<file>: they are compiled several at a time. ctest runs every case alone. Programs
# with torch take a second to start (Debian's libtorch loads some hundred libraries), so there a whole file is one entry,
# <room>.<file> (`<room>_tests --file=<file>`); CASES asks for single entries all the same: for files whose cases skip
# themselves, so that ctest counts what was skipped, and for long ones. NAME is for a second program of a room, whose
# files are named by ONLY; the first leaves out what WITHOUT says. PLAIN are files that do not include torch.
include(GoogleTest)

set_property(GLOBAL PROPERTY ROUTING_REGISTERED_TESTS "")
# Tests run side by side: threads that wait by spinning would take each other's cores.
set(ROUTING_TEST_ENVIRONMENT "OMP_WAIT_POLICY=passive")

# A run of one file of a room under an environment of its own: for what is read once per process.
function(routing_test_of_file room stem suffix environment)
  add_test(NAME ${room}.${stem}${suffix} COMMAND ${room}_tests --file=${stem} --gtest_brief=1)
  set_tests_properties(${room}.${stem}${suffix} PROPERTIES
    TIMEOUT 900 ENVIRONMENT "${ROUTING_TEST_ENVIRONMENT};${environment}")
endfunction()

function(routing_tests room)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH;CASES" "NAME" "ONLY;WITHOUT;PLAIN;LINKS")
  set(target ${room}_tests)
  if(arg_NAME)
    set(target ${arg_NAME}_tests)
  endif()
  string(REPLACE "/" "_" target ${target})
  if(arg_ONLY)
    set(sources ${arg_ONLY})
    list(TRANSFORM sources PREPEND ${room}/)
  else()
    set(without ${arg_WITHOUT})
    list(TRANSFORM without PREPEND ${room}/)
    routing_files_below(sources ${room}/*_test.cpp "${without}")
  endif()
  list(TRANSFORM arg_PLAIN PREPEND ${room}/)
  add_executable(${target} ${sources})
  routing_compile_options(${target})
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR})
  foreach(link IN LISTS arg_LINKS)
    target_link_libraries(${target} PRIVATE $<IF:$<TARGET_EXISTS:routing_${link}>,routing_${link},${link}>)
  endforeach()
  target_link_libraries(${target} PRIVATE routing_test_main)
  routing_compile_quickly(${target})
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${ROUTING_JOIN_SOURCES} UNITY_BUILD_BATCH_SIZE 5)
  if(arg_TORCH)
    routing_use_torch(${target})
    set_source_files_properties(${arg_PLAIN} PROPERTIES SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
  if(arg_TORCH AND NOT arg_CASES)
    foreach(source IN LISTS sources)
      get_filename_component(stem ${source} NAME_WE)
      routing_test_of_file(${room} ${stem} "" "")
    endforeach()
  else()
    gtest_discover_tests(${target} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                         PROPERTIES TIMEOUT 900 ENVIRONMENT "${ROUTING_TEST_ENVIRONMENT}")
  endif()
  list(TRANSFORM sources PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set_property(GLOBAL APPEND PROPERTY ROUTING_REGISTERED_TESTS ${sources})
endfunction()

# A test file that nobody builds cannot fail: configuring stops instead.
function(routing_require_all_tests_registered folder)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS ${folder}/*_test.cpp)
  get_property(registered GLOBAL PROPERTY ROUTING_REGISTERED_TESTS)
  foreach(file IN LISTS found)
    if(NOT file IN_LIST registered)
      message(FATAL_ERROR "${file} is not registered; its folder needs a routing_tests() in tests/CMakeLists.txt")
    endif()
  endforeach()
endfunction()
