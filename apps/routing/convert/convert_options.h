// What `routing convert` was asked for.
#pragma once

#include <string>
#include <vector>

namespace routing {

struct ConvertOptions {
  std::string source = {};
  std::string out = {};
  std::string from = "auto";   // auto, pytorch or tensorflow
  std::string to = "routing";  // routing or tensorflow
  // Of checkpoints of TensorFlow: the configuration. Of files of PyTorch: settings of data, training and evaluation.
  std::string preset = {};
  std::string config = {};
  std::vector<std::string> settings = {};
  // Of files of PyTorch.
  std::vector<std::string> arguments = {};  // NAME=VALUE
  std::string arguments_file = {};
  std::string entry = {};
  // Of models of ours.
  std::string checkpoint = "best";
  bool force = false;
  bool json = false;
};

}  // namespace routing
