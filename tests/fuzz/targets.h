// The targets, by the rooms that they read with.
#pragma once

#include "fuzz/fuzz_target.h"

namespace routing::fuzz {

FuzzTarget safetensors_header_target();
FuzzTarget safetensors_file_target();
FuzzTarget toml_target();
FuzzTarget settings_target();
FuzzTarget npz_target();
FuzzTarget png_target();
FuzzTarget cifar10_target();
FuzzTarget shard_target();
FuzzTarget data_json_target();
FuzzTarget text_target();
FuzzTarget words_target();
FuzzTarget sentencepiece_model_target();
FuzzTarget subwords_target();
FuzzTarget pickle_target();
FuzzTarget torch_archive_target();
FuzzTarget sorted_table_target();
FuzzTarget snappy_target();
FuzzTarget tensor_bundle_target();
FuzzTarget trainer_json_target();
FuzzTarget metrics_target();
FuzzTarget run_folder_target();
FuzzTarget event_file_target();
FuzzTarget rank_words_target();
FuzzTarget http_request_target();
FuzzTarget http_words_target();
FuzzTarget request_fields_target();
FuzzTarget text_stream_target();
FuzzTarget generate_options_target();

}  // namespace routing::fuzz
