// The parts of the module, each with a source file of its own.
#pragma once

#include <nanobind/nanobind.h>

namespace shoal {

void bind_partition(nanobind::module_& module);
void bind_remaining(nanobind::module_& module);
void bind_measures(nanobind::module_& module);
void bind_guarantees(nanobind::module_& module);
void bind_ncp(nanobind::module_& module);
void bind_stream(nanobind::module_& module);
void bind_lines(nanobind::module_& module);

}  // namespace shoal
