// What other programs call our configuration keys, for those who type from habit.
#pragma once

#include <string_view>

namespace routing {

// "lr", "n_layer", "seq-len": the key train.learning_rate, model.layers, train.sequence_length. Dashes, underscores,
// capitals and a section before the name make no difference. Empty if nobody calls a key so.
std::string_view key_called(std::string_view name);

}  // namespace routing
