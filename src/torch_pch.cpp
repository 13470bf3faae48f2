// Exists so that CMake makes the precompiled header once; see torch_pch.h.
