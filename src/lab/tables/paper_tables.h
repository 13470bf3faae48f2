// The rows of the paper's tables, as printed in arXiv 2003.05997.
#pragma once

#include "lab/tables/table_spec.h"

#include <vector>

namespace routing {

// cifar10-ablation, wikitext103, enwik8, imagenet64, pg19, step-time, shared-qk.
std::vector<TableSpec> paper_tables();

// Table 1 alone: it is by far the longest.
TableSpec cifar10_ablation();

}  // namespace routing
