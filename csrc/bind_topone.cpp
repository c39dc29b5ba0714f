#include <nanobind/nanobind.h>
namespace slimgrad {
void register_topone(nanobind::module_&) {}
}  // namespace slimgrad
