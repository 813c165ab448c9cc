//! The metrics of the service, as it shows them to Prometheus (OpenMetrics 1.0), as the protocol of
//! collectors has them.

use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, Sum,
};

use crate::span::attribute;

/// A family of metrics while its lines are read.
#[derive(Default)]
struct Family<'a> {
    name: &'a str,
    kind: &'a str,
    help: &'a str,
    points: Vec<NumberDataPoint>,
    histograms: Vec<HistogramDataPoint>,
}

/// One line: `NAME{LABEL="VALUE",...} NUMBER`.
struct Sample<'a> {
    name: &'a str,
    labels: Vec<(&'a str, String)>,
    value: f64,
}

/// Metrics at this time, in nanoseconds since 1970. Counters and histograms count from the start of
/// the process on.
pub fn to_otlp(text: &str, now_nanos: u64) -> Vec<Metric> {
    let mut metrics = Vec::new();
    let mut family = Family::default();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# ") {
            let mut words = rest.splitn(3, ' ');
            let (Some(word), Some(name)) = (words.next(), words.next()) else {
                continue;
            };
            if name != family.name {
                metrics.extend(std::mem::take(&mut family).into_metric());
                family.name = name;
            }
            match word {
                "TYPE" => family.kind = words.next().unwrap_or_default(),
                "HELP" => family.help = words.next().unwrap_or_default(),
                _ => {}
            }
        } else if let Some(sample) = read(line) {
            family.add(sample, now_nanos);
        }
    }
    metrics.extend(family.into_metric());
    metrics
}

impl Family<'_> {
    fn add(&mut self, sample: Sample<'_>, now_nanos: u64) {
        let Sample {
            name,
            mut labels,
            value,
        } = sample;
        if self.kind != "histogram" {
            self.points.push(NumberDataPoint {
                attributes: attributes(&labels),
                time_unix_nano: now_nanos,
                value: Some(Number::AsDouble(value)),
                ..NumberDataPoint::default()
            });
            return;
        }
        let bound = labels
            .iter()
            .position(|(label, _)| *label == "le")
            .map(|at| labels.remove(at).1);
        let attributes = attributes(&labels);
        let at = match self
            .histograms
            .iter()
            .rposition(|point| point.attributes == attributes)
        {
            Some(at) => at,
            None => {
                self.histograms.push(HistogramDataPoint {
                    attributes,
                    time_unix_nano: now_nanos,
                    ..HistogramDataPoint::default()
                });
                self.histograms.len() - 1
            }
        };
        let Some(point) = self.histograms.get_mut(at) else {
            return;
        };
        match (name.strip_prefix(self.name), bound) {
            (Some("_sum"), _) => point.sum = Some(value),
            (Some("_count"), _) => point.count = value as u64,
            (Some("_bucket"), Some(bound)) => {
                // OTLP counts each bucket by itself; OpenMetrics those below as well.
                let below: u64 = point.bucket_counts.iter().sum();
                point
                    .bucket_counts
                    .push((value as u64).saturating_sub(below));
                if let Ok(bound) = bound.parse::<f64>()
                    && bound.is_finite()
                {
                    point.explicit_bounds.push(bound);
                }
            }
            _ => {}
        }
    }

    fn into_metric(self) -> Option<Metric> {
        let cumulative = AggregationTemporality::Cumulative.into();
        let data = match self.kind {
            "histogram" if !self.histograms.is_empty() => Data::Histogram(Histogram {
                data_points: self.histograms,
                aggregation_temporality: cumulative,
            }),
            "counter" if !self.points.is_empty() => Data::Sum(Sum {
                data_points: self.points,
                aggregation_temporality: cumulative,
                is_monotonic: true,
            }),
            "gauge" | "unknown" | "info" if !self.points.is_empty() => Data::Gauge(Gauge {
                data_points: self.points,
            }),
            _ => return None,
        };
        Some(Metric {
            name: self.name.to_owned(),
            description: self.help.to_owned(),
            data: Some(data),
            ..Metric::default()
        })
    }
}

fn attributes(labels: &[(&str, String)]) -> Vec<KeyValue> {
    let pair = |(name, value): &(&str, String)| attribute(*name, value.clone().into());
    labels.iter().map(pair).collect()
}

fn read(line: &str) -> Option<Sample<'_>> {
    let (name, rest) = match line.split_once('{') {
        Some((name, rest)) => (name, Some(rest)),
        None => (line.split(' ').next()?, None),
    };
    let (labels, value) = match rest {
        Some(rest) => read_labels(rest)?,
        None => (Vec::new(), line.split(' ').nth(1)?),
    };
    let value = value.split_whitespace().next()?.parse().ok()?;
    Some(Sample {
        name,
        labels,
        value,
    })
}

/// Reads `LABEL="VALUE",...}`; returns what is behind it, too.
fn read_labels(mut text: &str) -> Option<(Vec<(&str, String)>, &str)> {
    let mut labels = Vec::new();
    loop {
        if let Some(rest) = text.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, rest) = text.split_once("=\"")?;
        let mut value = String::new();
        let mut characters = rest.char_indices();
        let end = loop {
            let (at, character) = characters.next()?;
            match character {
                '"' => break at,
                '\\' => match characters.next()?.1 {
                    'n' => value.push('\n'),
                    other => value.push(other),
                },
                other => value.push(other),
            }
        };
        labels.push((name, value));
        text = rest.get(end + 1..)?;
        text = text.strip_prefix(',').unwrap_or(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# HELP uploads Uploads.
# TYPE uploads counter
uploads_total{kind=\"a \\\"b\\\"\"} 3
uploads_total{kind=\"c\"} 4
# HELP waits Waits.
# TYPE waits gauge
waits -2
# HELP seconds Time.
# TYPE seconds histogram
seconds_sum{route=\"/x\"} 1.5
seconds_count{route=\"/x\"} 5
seconds_bucket{le=\"0.1\",route=\"/x\"} 2
seconds_bucket{le=\"1.0\",route=\"/x\"} 4
seconds_bucket{le=\"+Inf\",route=\"/x\"} 5
# EOF
";

    #[test]
    fn counters_gauges_and_histograms_are_converted() {
        let metrics = to_otlp(TEXT, 7);
        let names: Vec<&str> = metrics.iter().map(|metric| metric.name.as_str()).collect();
        assert_eq!(names, ["uploads", "waits", "seconds"]);
        let Some(Data::Sum(sum)) = &metrics[0].data else {
            panic!("{metrics:?}");
        };
        assert!(sum.is_monotonic);
        assert_eq!(sum.data_points[0].value, Some(Number::AsDouble(3.0)));
        let kind = attribute("kind", "a \"b\"".into());
        assert_eq!(sum.data_points[0].attributes, [kind]);
        let Some(Data::Gauge(gauge)) = &metrics[1].data else {
            panic!("{metrics:?}");
        };
        assert_eq!(gauge.data_points[0].value, Some(Number::AsDouble(-2.0)));
        assert_eq!(gauge.data_points[0].time_unix_nano, 7);
        let Some(Data::Histogram(histogram)) = &metrics[2].data else {
            panic!("{metrics:?}");
        };
        let point = &histogram.data_points[0];
        assert_eq!((point.count, point.sum), (5, Some(1.5)));
        assert_eq!(point.explicit_bounds, [0.1, 1.0]);
        assert_eq!(point.bucket_counts, [2, 2, 1]);
    }
}
