//! How a route describes its operation in the OpenAPI document.

use aide::transform::TransformOperation;

use super::describe::may_fail;

/// Describes an operation: a unique id such as `hubs.list`, its tag, and a summary of one line.
pub fn operation(
    id: &'static str,
    tag: &'static str,
    summary: &'static str,
) -> impl FnOnce(TransformOperation<'_>) -> TransformOperation<'_> {
    move |operation| operation.id(id).tag(tag).summary(summary)
}

/// As [`operation`], for an operation that also fails with statuses of its own. Statuses that
/// follow from its path and extractors are not repeated.
pub fn operation_failing(
    statuses: &'static [u16],
    id: &'static str,
    tag: &'static str,
    summary: &'static str,
) -> impl FnOnce(TransformOperation<'_>) -> TransformOperation<'_> {
    move |documented| {
        let mut documented = operation(id, tag, summary)(documented);
        may_fail(documented.inner_mut(), statuses);
        documented
    }
}
