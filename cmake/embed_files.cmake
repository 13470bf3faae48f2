# Writes a C++ source with a function that returns names and texts of files:
#   cmake -D OUTPUT=x.cpp -D HEADER=routing/config/presets.h -D FUNCTION=embedded_presets -D FILES=a.toml,b.toml -P embed_files.cmake
string(REPLACE "," ";" files "${FILES}")
set(source "// Written by cmake/embed_files.cmake; do not edit.\n#include \"${HEADER}\"\n\n")
string(APPEND source "namespace routing {\n\nstd::vector<std::pair<std::string, std::string>> ${FUNCTION}() {\n")
string(APPEND source "  return {\n")
foreach(file IN LISTS files)
  get_filename_component(name ${file} NAME_WLE)
  file(READ ${file} text)
  string(APPEND source "      {\"${name}\", R\"embedded(${text})embedded\"},\n")
endforeach()
string(APPEND source "  };\n}\n\n}  // namespace routing\n")
file(WRITE ${OUTPUT} "${source}")
