# What `cmake --install` writes, in two components (cmake/package.cmake makes a Debian package of each):
#   program       the program with what it loads, its manual, the completion of shells and the presets as files to start from
#   development   the library with a package for find_package(routing); routing-config.cmake.in says how it is used
# The laboratory is part of the program only.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS routing RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
install(TARGETS routing_engine routing_subwords LIBRARY DESTINATION lib/routing COMPONENT program)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/presets DESTINATION ${CMAKE_INSTALL_DATADIR}/routing COMPONENT program)

# Pages are written by the program after it is linked, and are compressed as Debian's are.
foreach(page_section 1 5)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man${page_section} COMPONENT program
    FILES_MATCHING PATTERN "*.${page_section}.gz")
endforeach()

set(shells ${PROJECT_SOURCE_DIR}/apps/routing/help/shells)
install(FILES ${shells}/bash.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME routing
  COMPONENT program)
install(FILES ${shells}/fish.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d RENAME routing.fish
  COMPONENT program)
# zsh looks into site-functions below its own prefix and, of Debian's packages, into vendor-completions.
install(CODE "
  set(zsh_folder share/zsh/site-functions)
  if(CMAKE_INSTALL_PREFIX MATCHES \"/usr/?\$\")
    set(zsh_folder share/zsh/vendor-completions)
  endif()
  file(INSTALL DESTINATION \${CMAKE_INSTALL_PREFIX}/\${zsh_folder} TYPE FILE RENAME _routing FILES ${shells}/zsh.zsh)"
  COMPONENT program)

# Two sets: the first can be linked on a machine without torch.
set(rooms_plain core config kernels data rank_watch http)
set(rooms_torch ops attention storage model interchange optim distributed evaluation generation training)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/routing)
foreach(set plain torch)
  foreach(room IN LISTS rooms_${set})
    install(TARGETS routing_${room} EXPORT routing_${set}
      ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
      FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
      INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  endforeach()
  install(EXPORT routing_${set} FILE routing-${set}.cmake NAMESPACE routing:: DESTINATION ${package_folder}
    COMPONENT development)
endforeach()
# By the name that find_package(routing) gives it, for projects that take this one in by add_subdirectory().
add_library(routing_library INTERFACE)
target_link_libraries(routing_library INTERFACE routing_training routing_generation routing_interchange)
add_library(routing::routing ALIAS routing_library)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/routing-config.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/routing-config.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/routing-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/routing-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/routing-config-version.cmake
              ${CMAKE_CURRENT_LIST_DIR}/dependencies.cmake
  DESTINATION ${package_folder} COMPONENT development)
