//! OpenMetrics text as the text format of Prometheus (version 0.0.4), for readers that do not ask
//! for OpenMetrics. The formats differ in the names of counters and in lines that only one has.

/// Converts a whole exposition.
pub fn from_openmetrics(text: &str) -> String {
    let mut classic = String::with_capacity(text.len() + text.len() / 16);
    // The HELP line of a metric precedes its TYPE line.
    let mut help = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ');
        } else if let Some((name, kind)) = line
            .strip_prefix("# TYPE ")
            .and_then(|rest| rest.split_once(' '))
        {
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                kind => ("", kind),
            };
            if let Some((_, help)) = help.take().filter(|(of, _)| *of == name) {
                classic.push_str(&format!("# HELP {name}{suffix} {help}\n"));
            }
            classic.push_str(&format!("# TYPE {name}{suffix} {kind}\n"));
        } else if !line.starts_with('#') {
            classic.push_str(line);
            classic.push('\n');
        }
    }
    classic
}

#[cfg(test)]
mod tests {
    #[test]
    fn counters_are_renamed_and_foreign_lines_left_out() {
        let openmetrics = "# HELP a_requests Requests served.\n# TYPE a_requests counter\na_requests_total{b=\"c d\"} 3\n\
                           # HELP a_time Time.\n# TYPE a_time gauge\n# UNIT a_time seconds\na_time_seconds 1.5\n\
                           # HELP a_build Build.\n# TYPE a_build info\na_build_info{version=\"1\"} 1\n# EOF\n";
        let classic = "# HELP a_requests_total Requests served.\n# TYPE a_requests_total counter\na_requests_total{b=\"c d\"} 3\n\
                       # HELP a_time Time.\n# TYPE a_time gauge\na_time_seconds 1.5\n\
                       # HELP a_build_info Build.\n# TYPE a_build_info gauge\na_build_info{version=\"1\"} 1\n";
        assert_eq!(super::from_openmetrics(openmetrics), classic);
    }
}
