# Configures a project that takes this tree in by add_subdirectory(), builds and runs what it makes of a room without
# torch, and compiles a source against the whole library.
#   cmake -D SOURCE_DIR=… -D WORK_DIR=… -D GENERATOR=… -P subproject_test.cmake
file(REMOVE_RECURSE ${WORK_DIR})
function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${what}: ${result}\n${output}")
  endif()
endfunction()

run("configure" ${CMAKE_COMMAND} -G ${GENERATOR} -S ${SOURCE_DIR}/tests/install/subproject -B ${WORK_DIR}
    -D ROUTING_SOURCE=${SOURCE_DIR})
run("build" ${CMAKE_COMMAND} --build ${WORK_DIR} --target presets)
run("the program" ${WORK_DIR}/presets)
# Other generators would build the library first.
if(GENERATOR STREQUAL "Ninja")
  run("compile with torch" ${CMAKE_COMMAND} --build ${WORK_DIR} --target attend)
endif()
