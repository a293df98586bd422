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

/// The longest time that a flag takes.
const MAX_DURATION: Duration = Duration::from_secs(3600);

/// A time: `300ms`, `1.5s`, `5m`, `1m30s`, `1h`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let parsed = fraction(text).or_else(|| humantime::parse_duration(text).ok());
    // `humantime` takes 0 without a unit.
    let has_unit = text.contains(char::is_alphabetic);
    parsed
        .filter(|time| has_unit && *time <= MAX_DURATION)
        .ok_or_else(|| "expected a time such as 300ms, 2s, 1.5s, 5m or 1m30s, up to 1 hour".to_string())
}

/// One number with a decimal point and its unit, such as `1.5s`: `humantime` takes whole numbers only.
fn fraction(text: &str) -> Option<Duration> {
    let (number, unit) = text.trim().split_at_checked(text.trim().find(char::is_alphabetic)?)?;
    let number: f64 = number.trim_end().parse().ok().filter(|_| number.contains('.'))?;
    let unit = humantime::parse_duration(&format!("1{unit}")).ok()?;
    Duration::try_from_secs_f64(number * unit.as_secs_f64()).ok()
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
        for text in
            ["", "0", "2", "1.5", "s", ".s", "fast", "-1s", "-1.5s", "1.5s30ms", "1,5s", "3601s", "1h1ms", "1.1h"]
        {
            let said = duration(text).unwrap_err();
            assert!(
                said.contains("expected a time such as 300ms, 2s, 1.5s") && said.contains("1 hour"),
                "{text}: {said}"
            );
        }
        let huge = format!("{}.0s", "9".repeat(400));
        assert!(duration(&huge).is_err() && duration(&huge.replace(".0", "")).is_err());
    }
}
