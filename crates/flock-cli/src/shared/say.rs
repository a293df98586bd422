//! Talk on standard error.

/// A line on standard error. Who does not listen (a closed pipe, a full disk under a log) does not end the work, as
/// `eprintln!` would.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}
