# What `cmake --install` writes: the program with what it loads, and the library with a package for find_package(routing). The laboratory is
# part of the program only. routing-config.cmake.in says how the package is used.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS routing RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS routing_engine routing_subwords LIBRARY DESTINATION lib/routing)

# Two sets: the first can be linked on a machine without torch.
set(rooms_plain core config kernels data rank_watch)
set(rooms_torch ops attention storage model optim distributed evaluation generation training)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/routing)
foreach(set plain torch)
  foreach(room IN LISTS rooms_${set})
    install(TARGETS routing_${room} EXPORT routing_${set}
      ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
      FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
      INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  endforeach()
  install(EXPORT routing_${set} FILE routing-${set}.cmake NAMESPACE routing:: DESTINATION ${package_folder})
endforeach()
# By the name that find_package(routing) gives it, for projects that take this one in by add_subdirectory().
add_library(routing_library INTERFACE)
target_link_libraries(routing_library INTERFACE routing_training routing_generation)
add_library(routing::routing ALIAS routing_library)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/routing-config.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/routing-config.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/routing-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/routing-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/routing-config-version.cmake
              ${CMAKE_CURRENT_LIST_DIR}/dependencies.cmake
  DESTINATION ${package_folder})
