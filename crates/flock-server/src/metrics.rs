//! Counters in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the latency histogram, in seconds.
const BOUNDS: [f64; 10] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

/// What is counted.
#[derive(Default)]
pub struct Metrics {
    requests: Mutex<BTreeMap<(String, u16), u64>>, // route, status
    latency: Mutex<BTreeMap<String, Histogram>>,   // route
    /// Triples added or removed.
    pub edits: AtomicU64,
}

#[derive(Default)]
struct Histogram {
    counts: [u64; BOUNDS.len()],
    count: u64,
    sum: f64,
}

impl Metrics {
    /// Counts a request. The route is the pattern that matched, never what the client sent.
    pub fn request(&self, route: &str, status: u16, took: Duration) {
        let mut requests = self.requests.lock().unwrap_or_else(|e| e.into_inner());
        *requests.entry((route.to_string(), status)).or_default() += 1;
        drop(requests);
        let mut latency = self.latency.lock().unwrap_or_else(|e| e.into_inner());
        let histogram = latency.entry(route.to_string()).or_default();
        let seconds = took.as_secs_f64();
        for (bound, count) in BOUNDS.iter().zip(&mut histogram.counts) {
            *count += u64::from(seconds <= *bound);
        }
        histogram.count += 1;
        histogram.sum += seconds;
    }

    /// The text, with some gauges of the moment.
    pub fn text(&self, passes: u64, gauges: &[(&str, &str, f64)]) -> String {
        let mut out = String::new();
        let _ = writeln!(
            out,
            "# HELP flock_requests_total Requests by route and status.\n# TYPE flock_requests_total counter"
        );
        for ((route, status), n) in self.requests.lock().unwrap_or_else(|e| e.into_inner()).iter() {
            let _ = writeln!(out, "flock_requests_total{{route=\"{route}\",status=\"{status}\"}} {n}");
        }
        let _ = writeln!(
            out,
            "# HELP flock_request_seconds Time from request to answer.\n# TYPE flock_request_seconds histogram"
        );
        for (route, h) in self.latency.lock().unwrap_or_else(|e| e.into_inner()).iter() {
            for (bound, count) in BOUNDS.iter().zip(h.counts) {
                let _ = writeln!(out, "flock_request_seconds_bucket{{route=\"{route}\",le=\"{bound}\"}} {count}");
            }
            let _ = writeln!(out, "flock_request_seconds_bucket{{route=\"{route}\",le=\"+Inf\"}} {}", h.count);
            let _ = writeln!(out, "flock_request_seconds_sum{{route=\"{route}\"}} {:.6}", h.sum);
            let _ = writeln!(out, "flock_request_seconds_count{{route=\"{route}\"}} {}", h.count);
        }
        let _ = writeln!(
            out,
            "# HELP flock_passes_total Units of work done.\n# TYPE flock_passes_total counter\nflock_passes_total {passes}\n\
             # HELP flock_edits_total Triples added or removed.\n# TYPE flock_edits_total counter\nflock_edits_total {}",
            self.edits.load(Ordering::Relaxed)
        );
        for (name, help, value) in gauges {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_by_hand() {
        let metrics = Metrics::default();
        metrics.request("/a", 200, Duration::from_millis(30));
        metrics.request("/a", 200, Duration::from_millis(3));
        metrics.request("/a", 429, Duration::from_secs(60));
        let text = metrics.text(7, &[("flock_waiting", "Jobs.", 2.0)]);
        for line in [
            "flock_requests_total{route=\"/a\",status=\"200\"} 2",
            "flock_requests_total{route=\"/a\",status=\"429\"} 1",
            "flock_request_seconds_bucket{route=\"/a\",le=\"0.005\"} 1",
            "flock_request_seconds_bucket{route=\"/a\",le=\"0.05\"} 2",
            "flock_request_seconds_bucket{route=\"/a\",le=\"+Inf\"} 3",
            "flock_request_seconds_count{route=\"/a\"} 3",
            "flock_passes_total 7",
            "flock_waiting 2",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
    }
}
