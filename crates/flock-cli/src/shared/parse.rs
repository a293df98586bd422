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

/// 300ms, 2s or 1.5s.
pub fn duration(text: &str) -> Result<Duration, String> {
    let rule = || "expected a time such as 300ms or 2s, up to 1 hour".to_string();
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 1e-3),
        None => (text.strip_suffix('s').ok_or_else(rule)?, 1.0),
    };
    let seconds = number.trim().parse::<f64>().map_err(|_| rule())? * unit;
    if (0.0..=3600.0).contains(&seconds) { Ok(Duration::from_secs_f64(seconds)) } else { Err(rule()) }
}
