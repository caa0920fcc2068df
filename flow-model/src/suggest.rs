//! Near misses.

/// The candidate nearest to a name, if one is near.
#[must_use]
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .find(|c| c.eq_ignore_ascii_case(name))
}
