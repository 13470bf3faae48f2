# Everything here is a Debian 12 package; scripts/packages.txt says which and why.
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(Torch REQUIRED)
# Debian's dnnl-config.cmake insists on OpenCL headers, which only its GPU interface needs.
find_library(DNNL_LIBRARY dnnl REQUIRED)
find_path(DNNL_INCLUDE_DIR dnnl.hpp REQUIRED)
add_library(DNNL::dnnl UNKNOWN IMPORTED)
set_target_properties(DNNL::dnnl PROPERTIES IMPORTED_LOCATION ${DNNL_LIBRARY}
                                            INTERFACE_INCLUDE_DIRECTORIES ${DNNL_INCLUDE_DIR})
find_package(PkgConfig REQUIRED)
pkg_check_modules(cairo REQUIRED IMPORTED_TARGET cairo)
find_package(ZLIB REQUIRED)
find_package(LibLZMA REQUIRED)
find_package(PNG REQUIRED)
pkg_check_modules(libzip REQUIRED IMPORTED_TARGET libzip)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
find_package(nlohmann_json 3.11 REQUIRED)
find_path(CLI11_INCLUDE_DIR CLI/CLI.hpp REQUIRED)
find_path(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h REQUIRED)
