# Installs into a folder of its own, then configures, builds and runs a project that knows only that folder.
#   cmake -D BUILD_DIR=… -D SOURCE_DIR=… -D WORK_DIR=… -D BUILD_TYPE=… -P install_test.cmake
file(REMOVE_RECURSE ${WORK_DIR})
function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${what}: ${result}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run("install" ${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/prefix)
if(EXISTS ${WORK_DIR}/prefix/include/lab)
  message(FATAL_ERROR "the laboratory was installed")
endif()
run("the installed program" ${WORK_DIR}/prefix/bin/routing --version)
run("its engine" ${WORK_DIR}/prefix/bin/routing info --preset tiny-enwik8)
foreach(file share/man/man1/routing.1.gz share/man/man1/routing-train.1.gz share/man/man5/routing-configuration.5.gz
             share/bash-completion/completions/routing share/zsh/site-functions/_routing
             share/fish/vendor_completions.d/routing.fish share/routing/presets/tiny-enwik8.toml)
  if(NOT EXISTS ${WORK_DIR}/prefix/${file})
    message(FATAL_ERROR "${file} was not installed")
  endif()
endforeach()
foreach(torch ON OFF)
  run("configure" ${CMAKE_COMMAND} -S ${SOURCE_DIR}/tests/install/consumer -B ${WORK_DIR}/build-${torch}
      -D CMAKE_PREFIX_PATH=${WORK_DIR}/prefix -D CMAKE_BUILD_TYPE=${BUILD_TYPE} -D TORCH=${torch})
  run("build" ${CMAKE_COMMAND} --build ${WORK_DIR}/build-${torch})
  run("the consumer" ${WORK_DIR}/build-${torch}/consumer)
  message(STATUS "torch ${torch}: ${output}")
endforeach()
