# Clang's fuzzer over the targets of tests/fuzz (scripts/fuzz): one program each, build/fuzz/fuzz_NAME. Only rooms and files
# that need no torch are built, all of them with the sanitizers and with the fuzzer's counters.
#
# GCC's warnings are the project's; clang-tidy has clang's.
set(ROUTING_WARNINGS "")
foreach(room core config data)
  add_subdirectory(${PROJECT_SOURCE_DIR}/src/routing/${room})
endforeach()

# Guesses at misspelt names compare every letter with every other: the fuzzer would take each of these for news.
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/routing/core/nearest_name.cpp TARGET_DIRECTORY routing_core PROPERTIES
  COMPILE_OPTIONS -fno-sanitize-coverage=trace-cmp)

# Of other rooms what reads, without sockets and without torch.
set(fuzz_parts
  src/routing/serving/http/wire/header_scan.cpp src/routing/serving/http/wire/message.cpp
  src/routing/serving/http/wire/request_reader.cpp src/routing/serving/http/wire/request_target.cpp
  src/routing/serving/http/wire/response_text.cpp
  src/routing/distributed/watch/heartbeat.cpp src/routing/distributed/watch/rank_judge.cpp
  src/routing/distributed/watch/rank_place.cpp src/routing/distributed/watch/rank_status.cpp
  src/routing/storage/safetensors_header.cpp src/routing/storage/safetensors_json.cpp
  src/routing/storage/safetensors_metadata.cpp
  src/routing/interchange/bundle/snappy.cpp src/routing/interchange/bundle/sorted_table.cpp
  src/routing/interchange/bundle/tensor_bundle.cpp src/routing/interchange/bundle/wire_format.cpp
  src/routing/interchange/pickle/pickle_machine.cpp src/routing/interchange/pickle/pickle_values.cpp
  src/routing/interchange/pickle/restricted_pickle.cpp src/routing/interchange/pickle/torch_archive.cpp
  src/routing/interchange/values/foreign_tensor.cpp
  src/routing/evaluation/likelihood.cpp src/routing/evaluation/measures.cpp src/routing/generation/sampler.cpp src/routing/generation/text_stream.cpp
  src/routing/training/log/event_file.cpp src/routing/training/log/metrics_log.cpp
  src/routing/training/run_directory.cpp src/routing/training/run_lock.cpp
  src/lab/runs/model_header.cpp src/lab/runs/run_history.cpp src/lab/runs/run_summary.cpp src/lab/runs/span_history.cpp
  apps/routing/runs/run_json.cpp apps/routing/serve/page/file_facts.cpp apps/routing/serve/page/growing_lines.cpp
  apps/routing/serve/page/page_lines.cpp apps/routing/serve/page/page_runs.cpp apps/routing/serve/page/run_catalog.cpp
  apps/routing/serve/page/run_files.cpp apps/routing/serve/page/gunzip.cpp
  apps/routing/serve/request/api_error.cpp apps/routing/serve/request/api_fields.cpp
  apps/routing/serve/request/completion_fields.cpp
  apps/routing/generate/generate_options.cpp apps/routing/generate/generate_prompt.cpp apps/routing/ranks/rank_options.cpp
  apps/routing/shell/key_values.cpp apps/routing/shell/options.cpp)
list(TRANSFORM fuzz_parts PREPEND ${PROJECT_SOURCE_DIR}/)
file(GLOB fuzz_targets CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/targets/*_targets.cpp)
add_library(routing_fuzz_parts STATIC ${fuzz_parts} ${fuzz_targets} ${PROJECT_SOURCE_DIR}/tests/fuzz/scratch_files.cpp)
routing_compile_options(routing_fuzz_parts)
target_include_directories(routing_fuzz_parts PUBLIC ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/apps/routing)
target_include_directories(routing_fuzz_parts SYSTEM PUBLIC ${CLI11_INCLUDE_DIR} ${BOOST_INCLUDE_DIR})
target_link_libraries(routing_fuzz_parts PUBLIC
  routing_data nlohmann_json::nlohmann_json PkgConfig::libzip ZLIB::ZLIB)

file(STRINGS ${PROJECT_SOURCE_DIR}/tests/fuzz/targets.h names REGEX "^FuzzTarget ")
foreach(line IN LISTS names)
  string(REGEX REPLACE "^FuzzTarget ([a-z0-9_]+)_target.*" "\\1" name "${line}")
  if(name STREQUAL "subwords")
    continue()  # The plug-in with SentencePiece has its own symbols (RTLD_DEEPBIND), which the sanitizers refuse.
  endif()
  add_executable(fuzz_${name} ${PROJECT_SOURCE_DIR}/tests/fuzz/fuzzer_entry.cpp)
  target_compile_definitions(fuzz_${name} PRIVATE ROUTING_FUZZ_TARGET=${name}_target)
  target_link_libraries(fuzz_${name} PRIVATE routing_fuzz_parts)
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(fuzz_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
endforeach()
