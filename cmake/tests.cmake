# routing_tests(ops TORCH SOURCES attend_test.cpp … LINKS test_support)
#
# Every file of tests/<room> becomes a program. Without TORCH every case is a ctest entry of its own. Programs with torch
# take a second to start (Debian's libtorch loads some hundred libraries), so there a whole file is one entry; CASES asks
# for single entries all the same: for files whose cases skip themselves, so that ctest counts what was skipped. PLAIN
# are files that do not include torch themselves.
include(GoogleTest)

set_property(GLOBAL PROPERTY ROUTING_REGISTERED_TESTS "")
# Tests run side by side: threads that wait by spinning would take each other's cores.
set(ROUTING_TEST_ENVIRONMENT "OMP_WAIT_POLICY=passive")

function(routing_tests room)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH;CASES" "" "SOURCES;PLAIN;LINKS;DEFINITIONS")
  foreach(source IN LISTS arg_SOURCES arg_PLAIN)
    get_filename_component(stem ${source} NAME_WE)
    set(target ${room}_${stem})
    add_executable(${target} ${room}/${source})
    routing_compile_options(${target})
    target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    foreach(link IN LISTS arg_LINKS)
      target_link_libraries(${target} PRIVATE routing_${link})
    endforeach()
    # Compiling takes longer than running most of them.
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
    if(arg_TORCH)
      routing_use_torch(${target})
      if(source IN_LIST arg_PLAIN)
        set_source_files_properties(${room}/${source} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
      endif()
    endif()
    target_link_libraries(${target} PRIVATE GTest::gtest_main)
    # On the source, not the target: a target-wide definition would forbid the precompiled header.
    set_property(SOURCE ${room}/${source} PROPERTY COMPILE_DEFINITIONS ${arg_DEFINITIONS})
    if(arg_TORCH AND NOT arg_CASES)
      add_test(NAME ${room}.${stem} COMMAND ${target} --gtest_brief=1)
      set_tests_properties(${room}.${stem} PROPERTIES TIMEOUT 900 ENVIRONMENT "${ROUTING_TEST_ENVIRONMENT}")
    else()
      gtest_discover_tests(${target} DISCOVERY_MODE PRE_TEST
                           PROPERTIES TIMEOUT 900 ENVIRONMENT "${ROUTING_TEST_ENVIRONMENT}")
    endif()
    set_property(GLOBAL APPEND PROPERTY ROUTING_REGISTERED_TESTS ${CMAKE_CURRENT_SOURCE_DIR}/${room}/${source})
  endforeach()
endfunction()

# A test file that nobody builds cannot fail: configuring stops instead.
function(routing_require_all_tests_registered folder)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS ${folder}/*_test.cpp)
  get_property(registered GLOBAL PROPERTY ROUTING_REGISTERED_TESTS)
  foreach(file IN LISTS found)
    if(NOT file IN_LIST registered)
      message(FATAL_ERROR "${file} is not registered; name it in a routing_tests() of tests/CMakeLists.txt")
    endif()
  endforeach()
endfunction()
