// Folders that hold runs, as paths to go on from.
#pragma once

#include <string>
#include <vector>

namespace routing {

// Paths that begin with `typed`, one folder deeper at most: of runs, checkpoints and exports, as they are; of folders
// below which there are some, with a "/"; of model files. By name. A "~" is the home folder, and stays in the answer.
//
// Folders are searched three deep, and no more than some thousand of them: an answer for the Tab key comes at once.
// What cannot be read, is hidden or has a line end in its name is left out.
std::vector<std::string> run_paths(const std::string& typed);

}  // namespace routing
