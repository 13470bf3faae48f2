# `make package`: a Debian package of each component of install.cmake, out of what is built already.
#
# A package fits the Debian that it was built on, because libtorch has another name in each; its version says which. A
# further component needs its name in CPACK_COMPONENTS_ALL and a routing_package().
file(STRINGS /etc/os-release debian_release REGEX "^VERSION_ID=")
string(REGEX MATCH "[0-9]+" debian_release "${debian_release}")
set(CPACK_PACKAGE_NAME routing)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_DEBIAN_PACKAGE_RELEASE 1+deb${debian_release})
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
# Each package has its own, the first line of its description.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL program development)
if(ROUTING_PYTHON_PACKAGE)
  list(APPEND CPACK_COMPONENTS_ALL python)
endif()
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# As Debian's own tools, by the variables of devscripts.
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "The routing authors <maintainers@routing.example>")
if(DEFINED ENV{DEBFULLNAME} AND DEFINED ENV{DEBEMAIL})
  set(CPACK_DEBIAN_PACKAGE_MAINTAINER "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
endif()

# The papers that Debian asks of every package: what may be done with it, and what changed.
set(papers ${PROJECT_BINARY_DIR}/package-papers)
string(TIMESTAMP package_date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(READ ${PROJECT_SOURCE_DIR}/LICENSE license)
string(REGEX MATCH "Copyright \\(c\\) [^\n]*" copyright_line "${license}")
string(REGEX REPLACE "Copyright \\(c\\) " "" copyright_line "${copyright_line}")
string(REGEX REPLACE "^.*Copyright[^\n]*\n\n" "" license_text "${license}")
string(STRIP "${license_text}" license_text)
string(REPLACE "\n\n" "\n.\n" license_text "${license_text}")
string(REPLACE "\n" "\n " license_text "${license_text}")
file(WRITE ${papers}/copyright "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: routing

Files: *
Copyright: ${copyright_line}
License: Expat
 ${license_text}
")

# routing_package(COMPONENT NAME SECTION): what all packages have in common.
macro(routing_package component name section)
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
  file(WRITE ${papers}/${name}/changelog.Debian "routing (${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium

  * changelog.gz says what is new.

 -- ${CPACK_DEBIAN_PACKAGE_MAINTAINER}  ${package_date}
")
  file(COPY_FILE ${PROJECT_SOURCE_DIR}/CHANGELOG.md ${papers}/${name}/changelog)
  execute_process(COMMAND gzip -9nf ${papers}/${name}/changelog.Debian ${papers}/${name}/changelog COMMAND_ERROR_IS_FATAL ANY)
  # Of packages only, not of cmake --install.
  install(FILES ${papers}/copyright ${papers}/${name}/changelog.Debian.gz ${papers}/${name}/changelog.gz
    DESTINATION share/doc/${name} COMPONENT ${component} EXCLUDE_FROM_ALL)
endmacro()

routing_package(program routing science)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "content-based sparse attention for long sequences
Trains, evaluates and samples Routing Transformers on the processor: text as
bytes, words or subwords, images, and encoder-decoders. Attention by content,
local, strided, LSH and other patterns are mixed head by head.

The likelihoods it reports are labelled: strictly causal, or with a selection
that reads the future, as in the original paper.")
# What no library names: a BLAS that shares its threads with OpenMP, and the letters of the figures.
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS "libopenblas0-openmp, fonts-dejavu-core")
# The text of routing quickstart.
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS dict-gcide)

routing_package(development routing-dev libdevel)
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "C++ library of the Routing Transformer
Headers, static libraries and a CMake package: find_package(routing) gives
routing::routing, attention over any sparse plan on libtorch, and single rooms,
some of which need no torch.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "g++, pkg-config, libtorch-dev, libgloo-dev, libdnnl-dev, \
nlohmann-json3-dev, libfmt-dev, libxxhash-dev, zlib1g-dev, libpng-dev, libzip-dev, liblzma-dev, libopenblas0-openmp")

if(ROUTING_PYTHON_PACKAGE)
  math(EXPR python_next "${Python_VERSION_MINOR} + 1")
  routing_package(python python3-routing-transformer python)
  set(CPACK_COMPONENT_PYTHON_DESCRIPTION "routing attention for PyTorch on the processor
A layer of local and routed heads for models of one's own, attention over any
sparse plan, and models of the program routing in Python: predictions, samples,
what heads read.")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS ON)
  # Compiled modules come and go with the package.
  set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA
    ${PROJECT_SOURCE_DIR}/cmake/python-package/postinst ${PROJECT_SOURCE_DIR}/cmake/python-package/prerm)
  # The extension is of one version of Python, as Debian's own are.
  set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3 (>= ${Python_VERSION_MAJOR}.${Python_VERSION_MINOR}~), \
python3 (<< ${Python_VERSION_MAJOR}.${python_next}), python3-torch, python3-numpy, libopenblas0-openmp")
endif()

include(CPack)
