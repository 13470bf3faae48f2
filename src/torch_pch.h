// The torch headers our code uses, compiled once. Include the header you need in each file as if this did not exist:
// builds without precompiled headers (make lint) rely on it.
#pragma once
#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
