//! The ids of the events in a message, as they are stored: the first id has its own column, and
//! this text holds the differences of consecutive ids, the first of them 0.

/// The differences of the ids; None for a single event, whose id is the first.
pub fn encode(ids: &[i64]) -> Option<String> {
    if ids.len() < 2 {
        return None;
    }
    let mut previous = ids.first().copied().unwrap_or_default();
    let mut differences = Vec::with_capacity(ids.len());
    for id in ids {
        differences.push(id.saturating_sub(previous));
        previous = *id;
    }
    serde_json::to_string(&differences).ok()
}

/// The ids. A text that is not a result of [`encode`] stands for the first id alone.
pub fn decode(first_id: i64, differences: Option<&str>) -> Vec<i64> {
    let differences: Option<Vec<i64>> =
        differences.and_then(|text| serde_json::from_str(text).ok());
    let Some(differences) = differences.filter(|differences| !differences.is_empty()) else {
        return vec![first_id];
    };
    let next = |id: &mut i64, difference: i64| {
        *id = id.saturating_add(difference);
        Some(*id)
    };
    differences.into_iter().scan(first_id, next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_back() {
        for ids in [
            vec![7],
            vec![7, 8],
            vec![
                1_760_000_000_000_000,
                1_760_000_000_000_004,
                1_760_000_060_000_000,
            ],
        ] {
            assert_eq!(decode(ids[0], encode(&ids).as_deref()), ids);
        }
        assert_eq!(encode(&[5, 6, 9]).as_deref(), Some("[0,1,3]"));
        assert_eq!(encode(&[5]), None);
        assert_eq!(decode(5, Some("[]")), [5]);
        assert_eq!(decode(5, Some("rubbish")), [5]);
    }
}
