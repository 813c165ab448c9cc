//! Sets of times: lists of spans, each from a microsecond up to, and without, another; in order,
//! and apart from each other.

pub type Span = (i64, i64);

/// The set of all times in any of the spans.
pub fn union(mut spans: Vec<Span>) -> Vec<Span> {
    spans.retain(|(from, to)| from < to);
    spans.sort_unstable();
    let mut set: Vec<Span> = Vec::with_capacity(spans.len());
    for (from, to) in spans {
        match set.last_mut() {
            Some(before) if from <= before.1 => before.1 = before.1.max(to),
            _ => set.push((from, to)),
        }
    }
    set
}

/// The times that are in both sets.
pub fn common(one: &[Span], two: &[Span]) -> Vec<Span> {
    let (mut one, mut two) = (one.iter().peekable(), two.iter().peekable());
    let mut set = Vec::new();
    while let (Some(first), Some(second)) = (one.peek(), two.peek()) {
        let (from, to) = (first.0.max(second.0), first.1.min(second.1));
        if from < to {
            set.push((from, to));
        }
        if first.1 <= second.1 {
            one.next();
        } else {
            two.next();
        }
    }
    set
}

/// The times of the first set that are not in the second.
pub fn without(one: &[Span], two: &[Span]) -> Vec<Span> {
    let mut gaps = Vec::with_capacity(two.len() + 1);
    let mut from = i64::MIN;
    for (start, end) in two {
        gaps.push((from, *start));
        from = *end;
    }
    gaps.push((from, i64::MAX));
    common(one, &gaps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_joined_and_cut() {
        let set = union(vec![(10, 20), (0, 5), (5, 7), (15, 30), (40, 40)]);
        assert_eq!(set, [(0, 7), (10, 30)]);
        assert_eq!(
            common(&set, &[(3, 12), (29, 50)]),
            [(3, 7), (10, 12), (29, 30)]
        );
        assert_eq!(without(&set, &[(3, 12), (29, 50)]), [(0, 3), (12, 29)]);
        assert_eq!(without(&set, &[]), set);
        assert!(without(&set, &[(0, 100)]).is_empty());
    }
}
