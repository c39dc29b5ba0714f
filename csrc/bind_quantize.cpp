#include <nanobind/nanobind.h>
namespace slimgrad {
void register_quantize(nanobind::module_&) {}
}  // namespace slimgrad
