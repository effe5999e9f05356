//! What a scrape shows after known traffic.

use super::*;
use crate::a2a::Operation;

#[test]
fn allowed_and_refused_requests_share_one_family() {
    let metrics = Metrics::new().unwrap();
    let agent = metrics.agent("pr-agent");
    agent.allowed(Operation::SendMessage);
    agent.allowed(Operation::SendMessage);
    agent.request_on("agent", Some(Operation::GetTask), "deny", "no_rule");
    metrics.request_without_agent("none", "deny", "not_found");
    let text = metrics.render();
    for line in [
        r#"portcullis_requests_total{agent="pr-agent",effect="allow",operation="SendMessage",reason="allowed",surface="agent"} 2"#,
        r#"portcullis_requests_total{agent="pr-agent",effect="deny",operation="GetTask",reason="no_rule",surface="agent"} 1"#,
        r#"portcullis_requests_total{agent="none",effect="deny",operation="none",reason="not_found",surface="none"} 1"#,
    ] {
        assert!(text.lines().any(|l| l == line), "{line}\nnot in\n{text}");
    }
}

#[test]
fn every_operation_has_the_slot_of_its_own_name() {
    let metrics = Metrics::new().unwrap();
    let agent = metrics.agent("a");
    for (i, operation) in Operation::ALL.into_iter().enumerate() {
        assert_eq!(operation as usize, i);
        agent.allowed(operation);
        agent.duration(Some(operation), operation.is_streaming(), Duration::ZERO);
    }
    let text = metrics.render();
    for operation in Operation::ALL {
        let label = format!("operation=\"{}\"", operation.name());
        let count = text
            .lines()
            .filter(|l| l.starts_with("portcullis_requests_total") && l.contains(&label));
        assert_eq!(count.count(), 1, "{label}");
    }
}

#[test]
fn a_call_a_slow_call_and_a_stream_fall_in_distinct_finite_buckets() {
    let metrics = Metrics::new().unwrap();
    let agent = metrics.agent("a");
    for seconds in [0.2, 90.0, 400.0, 4.0 * 3600.0] {
        agent.duration(None, true, Duration::from_secs_f64(seconds));
    }
    let text = metrics.render();
    let counts = [("0.25", 1), ("120", 2), ("600", 3), ("14400", 4)];
    for (le, count) in counts {
        let line = format!(
            "portcullis_request_duration_seconds_bucket{{agent=\"a\",operation=\"none\",streaming=\"true\",le=\"{le}\"}} {count}"
        );
        assert!(text.lines().any(|l| l == line), "{line}\nnot in\n{text}");
    }
}

#[test]
fn a_stream_is_open_until_its_guard_goes() {
    let metrics = Metrics::new().unwrap();
    let agent = metrics.agent("a");
    let open = agent.stream_opened();
    assert!(
        metrics
            .render()
            .contains("portcullis_streams_open{agent=\"a\"} 1\n")
    );
    drop(open);
    assert!(
        metrics
            .render()
            .contains("portcullis_streams_open{agent=\"a\"} 0\n")
    );
}

#[test]
fn an_agent_keeps_its_counters_across_generations() {
    let metrics = Metrics::new().unwrap();
    metrics.agent("a").delivery("responded");
    metrics.agent("a").delivery("responded");
    metrics.agent("a").attempt("reply", true);
    metrics.reloaded(2);
    metrics.reload_failed();
    let text = metrics.render();
    assert!(text.contains("portcullis_deliveries_total{agent=\"a\",delivery=\"responded\"} 2\n"));
    assert!(
        text.contains("portcullis_attempts_total{agent=\"a\",reused=\"true\",stage=\"reply\"} 1\n")
    );
    assert!(text.contains("portcullis_generation 2\n"));
    assert!(text.contains("portcullis_reloads_total{result=\"failed\"} 1\n"));
}

#[test]
fn labels_beyond_the_bound_are_counted_as_other() {
    let metrics = Metrics::new().unwrap();
    let kinds: [&'static str; 26] = [
        "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r",
        "s", "t", "u", "v", "w", "x", "y", "z",
    ];
    for kind in kinds {
        metrics.journal_record(kind);
    }
    let text = metrics.render();
    assert!(text.contains("portcullis_journal_records_total{kind=\"x\"} 1\n"));
    assert!(text.contains("portcullis_journal_records_total{kind=\"other\"} 2\n"));
}

#[test]
fn phases_are_measured_apart() {
    let metrics = Metrics::new().unwrap();
    for phase in Phase::ALL {
        metrics.overhead(phase, Duration::from_micros(20));
    }
    let text = metrics.render();
    assert!(
        text.contains("portcullis_overhead_seconds_bucket{phase=\"decide\",le=\"0.000025\"} 1\n")
    );
    assert!(text.contains("portcullis_overhead_seconds_count{phase=\"total\"} 1\n"));
}

#[test]
fn one_policy_digest_is_in_force() {
    let metrics = Metrics::new().unwrap();
    let shown = || {
        let text = metrics.render();
        let lines = text
            .lines()
            .filter(|l| l.starts_with("portcullis_policy_info"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    for digit in ["a", "a", "b"] {
        metrics.set_policy_digest(&digit.repeat(64));
        let digest = digit.repeat(16);
        assert_eq!(
            shown(),
            [format!("portcullis_policy_info{{digest=\"{digest}\"}} 1")]
        );
    }
}

#[test]
fn what_must_never_be_is_shown_as_none() {
    let metrics = Metrics::new().unwrap();
    let agent = metrics.agent("a");
    let none = "portcullis_refused_reached_total{agent=\"a\"} 0\n";
    assert!(metrics.render().contains(none));
    agent.refused_reached();
    assert!(!metrics.render().contains(none));
}

#[test]
fn calls_that_a_crash_left_open_and_first_bytes_are_counted() {
    let metrics = Metrics::new().unwrap();
    let agent = metrics.agent("a");
    agent.unknown_deliveries(3);
    agent.first_byte(Duration::from_millis(40));
    let text = metrics.render();
    for line in [
        "portcullis_deliveries_total{agent=\"a\",delivery=\"unknown\"} 3",
        "portcullis_time_to_first_byte_seconds_bucket{agent=\"a\",le=\"0.05\"} 1",
        "portcullis_time_to_first_byte_seconds_bucket{agent=\"a\",le=\"0.025\"} 0",
    ] {
        assert!(text.lines().any(|l| l == line), "{line}\nnot in\n{text}");
    }
}
