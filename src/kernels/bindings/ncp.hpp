// Bindings with a source file of their own.
#pragma once

#include <nanobind/nanobind.h>

// After the class Guarantees is bound.
void bind_ncp(nanobind::module_& module);
