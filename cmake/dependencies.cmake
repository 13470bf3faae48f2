# Everything here is a Debian package; scripts/packages.txt says which and why. Also installed, and read by
# routing-config.cmake: there ROUTING_WITHOUT_TORCH asks for what the rooms without torch need.
#
# Global, so that a project which takes this one in by add_subdirectory() can link its rooms.
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
find_package(OpenMP REQUIRED COMPONENTS CXX)
if(NOT ROUTING_WITHOUT_TORCH)
  find_package(Torch REQUIRED)
  # Debian 12's libtorch logs through glog, 13's does not.
  find_library(GLOG_LIBRARY glog)
endif()
# Debian's dnnl-config.cmake insists on OpenCL headers, which only its GPU interface needs.
find_library(DNNL_LIBRARY dnnl REQUIRED)
find_path(DNNL_INCLUDE_DIR dnnl.hpp REQUIRED)
if(NOT TARGET DNNL::dnnl)
  add_library(DNNL::dnnl UNKNOWN IMPORTED GLOBAL)
  set_target_properties(DNNL::dnnl PROPERTIES IMPORTED_LOCATION ${DNNL_LIBRARY}
                                              INTERFACE_INCLUDE_DIRECTORIES ${DNNL_INCLUDE_DIR})
endif()
find_package(PkgConfig REQUIRED)
find_package(ZLIB REQUIRED)
find_package(LibLZMA REQUIRED)
find_package(PNG REQUIRED)
pkg_check_modules(libzip REQUIRED IMPORTED_TARGET GLOBAL libzip)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET GLOBAL libxxhash)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(fmt REQUIRED)
