# routing_test_program(ops TORCH SOURCES ops/attend_test.cpp … LINKS attention support)
#
# One program a room; every case becomes one ctest entry, and a case that calls GTEST_SKIP is counted as skipped.
include(GoogleTest)

set_property(GLOBAL PROPERTY ROUTING_REGISTERED_TESTS "")

function(routing_test_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH" "" "SOURCES;LINKS;DEFINITIONS")
  set(target ${name}_tests)
  add_executable(${target} ${arg_SOURCES})
  routing_compile_options(${target})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  foreach(link IN LISTS arg_LINKS)
    target_link_libraries(${target} PRIVATE routing_${link})
  endforeach()
  if(arg_TORCH)
    routing_use_torch(${target})
  endif()
  target_link_libraries(${target} PRIVATE GTest::gtest_main)
  foreach(source IN LISTS arg_SOURCES)
    # On the sources, not the target: a target-wide definition would forbid the precompiled header.
    set_source_files_properties(${source} PROPERTIES COMPILE_DEFINITIONS "${arg_DEFINITIONS}")
    set_property(GLOBAL APPEND PROPERTY ROUTING_REGISTERED_TESTS ${CMAKE_CURRENT_SOURCE_DIR}/${source})
  endforeach()
  gtest_discover_tests(${target} DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 600)
endfunction()

# A test file that nobody builds cannot fail: configuring stops instead.
function(routing_require_all_tests_registered folder)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS ${folder}/*_test.cpp)
  get_property(registered GLOBAL PROPERTY ROUTING_REGISTERED_TESTS)
  foreach(file IN LISTS found)
    if(NOT file IN_LIST registered)
      message(FATAL_ERROR "${file} is not registered; name it in a routing_test_program() of tests/CMakeLists.txt")
    endif()
  endforeach()
endfunction()
