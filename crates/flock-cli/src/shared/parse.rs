//! Values of flags: what is taken, and the rule that an error states.

use std::time::Duration;

/// A number of threads.
pub fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads) if (1..=1024).contains(&threads) => Ok(threads),
        _ => Err("expected a number from 1 to 1024".to_string()),
    }
}

/// A number that is not 0.
pub fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err("expected a number from 1".to_string()),
    }
}

/// A share of something, neither nothing nor all.
pub fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if share > 0.0 && share < 1.0 => Ok(share),
        _ => Err("expected a number above 0 and below 1, such as 0.1".to_string()),
    }
}

/// Seconds for a measurement.
pub fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|e| format!("{e}"))?;
    if (0.01..=600.0).contains(&seconds) { Ok(seconds) } else { Err("expected 0.01 to 600".to_string()) }
}

/// The longest time that a flag takes.
const MAX_DURATION: Duration = Duration::from_secs(3600);

/// The longest text that is taken for one. On some that are longer, `humantime` panics: 18446744073709551615s1000ms.
const MAX_DURATION_LEN: usize = 20;

/// A long time: `90s`, `30m`, `8h`, `2days`, up to 30 days.
pub fn long_duration(text: &str) -> Result<Duration, String> {
    let is_sound = text.len() <= MAX_DURATION_LEN && text.contains(char::is_alphabetic);
    let parsed = is_sound.then(|| humantime::parse_duration(text).ok()).flatten();
    parsed
        .filter(|time| *time <= Duration::from_secs(30 * 86400))
        .ok_or_else(|| "expected a time such as 90s, 30m, 8h or 2days, up to 30 days".to_string())
}

/// A time: `300ms`, `1.5s`, `5m`, `1m30s`, `1h`.
pub fn duration(text: &str) -> Result<Duration, String> {
    // `humantime` wants a digit before the point, and takes 0 without a unit.
    let digit = if text.starts_with('.') { "0" } else { "" };
    let is_sound = text.len() <= MAX_DURATION_LEN && text.contains(char::is_alphabetic);
    let parsed = is_sound.then(|| humantime::parse_duration(&format!("{digit}{text}")).ok()).flatten();
    parsed
        .filter(|time| *time <= MAX_DURATION)
        .ok_or_else(|| "expected a time such as 300ms, 2s, 1.5s, 5m or 1m30s, up to 1 hour".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let millis = |text: &str| duration(text).map(|time| time.as_secs_f64() * 1e3);
        for (text, want) in [
            ("300ms", 300.0),
            ("2s", 2e3),
            ("1.5s", 1.5e3),
            (".5s", 500.0),
            ("0.5ms", 0.5),
            ("2 s", 2e3),
            ("0ms", 0.0),
            ("5m", 300e3),
            ("1m30s", 90e3),
            ("1m 30s", 90e3),
            ("1.5m", 90e3),
            ("1h", 3600e3),
            ("3600s", 3600e3),
        ] {
            assert_eq!(millis(text), Ok(want), "{text}");
        }
        for text in [
            "", "0", "2", "1.5", "s", ".s", "fast", "-1s", "-1.5s", "1..5s", "1.5.5s", "1,5s", "3601s", "1h1ms", "1.1h",
        ] {
            let said = duration(text).unwrap_err();
            assert!(
                said.contains("expected a time such as 300ms, 2s, 1.5s") && said.contains("1 hour"),
                "{text}: {said}"
            );
        }
        let nines = "9".repeat(400);
        for text in [format!("{nines}s"), format!("{nines}.5s"), "18446744073709551615s1000ms".to_string()] {
            assert!(duration(&text).is_err(), "{text}");
        }
    }
}
