//! Values that are one word or number: durations, percentages, CPU counts.
//!
//! Pure functions from text to value; a failure says what is wrong and, where there is one, how to
//! fix it. Places and keys are the reader's business.

use crate::suggest::nearest;

/// Why a text is no such value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong, for the label.
    pub label: String,
    /// How to fix it.
    pub help: Option<String>,
}

impl Fault {
    fn new(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            help: None,
        }
    }

    fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }
}

/// Units of durations: name, microseconds, decimal digits that a fraction may have.
pub const UNITS: [(&str, u64, usize); 3] = [("us", 1, 0), ("ms", 1_000, 3), ("s", 1_000_000, 6)];

/// Microseconds of a text like `3ms` or `0.5s`: digits, optionally a fraction, then the unit.
/// Values beyond 64 bits saturate; every key's range is far below.
pub fn duration_us(text: &str) -> Result<u64, Fault> {
    if text.is_empty() {
        return Err(Fault::new("an empty duration").help("write a number and a unit: \"20ms\""));
    }
    if text.starts_with(['-', '+']) {
        return Err(Fault::new("a duration has no sign"));
    }
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (whole, rest) = text.split_at(digits);
    if whole.is_empty() {
        return Err(Fault::new("a duration starts with a digit")
            .help("write a number and a unit: \"20ms\""));
    }
    let (fraction, unit) = match rest.strip_prefix('.') {
        Some(rest) => {
            let digits = rest
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(rest.len());
            if digits == 0 {
                return Err(Fault::new("digits are missing after the point"));
            }
            rest.split_at(digits)
        }
        None => ("", rest),
    };
    let Some((_, scale, places)) = UNITS.into_iter().find(|(name, ..)| *name == unit) else {
        return Err(unit_fault(&text[..text.len() - unit.len()], unit));
    };
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > places {
        return Err(Fault::new("finer than a microsecond"));
    }
    let padded = format!("{fraction:0<places$}");
    let fraction_us = padded.parse::<u64>().unwrap_or(0);
    let whole = whole.parse::<u64>().unwrap_or(u64::MAX);
    Ok(whole.saturating_mul(scale).saturating_add(fraction_us))
}

fn unit_fault(number: &str, unit: &str) -> Fault {
    if unit.is_empty() {
        return Fault::new("the unit is missing")
            .help(format!("units are us, ms and s: \"{number}ms\""));
    }
    let trimmed = unit.trim();
    if trimmed != unit && UNITS.iter().any(|(name, ..)| *name == trimmed) {
        return Fault::new("blanks in a duration").help(format!("write \"{number}{trimmed}\""));
    }
    let lower = trimmed.to_lowercase();
    let guess = match lower.as_str() {
        "msec" | "millis" => Some("ms"),
        "usec" | "micros" | "µs" => Some("us"),
        "sec" | "seconds" => Some("s"),
        other => UNITS
            .iter()
            .map(|(name, ..)| *name)
            .find(|name| *name == other),
    };
    let fault = Fault::new(format!("unknown unit `{trimmed}`"));
    match guess {
        Some(name) => fault.help(format!("write \"{number}{name}\"")),
        None => fault.help("units are us, ms and s"),
    }
}

/// The number of a text like `25%`.
pub fn percent(text: &str) -> Result<i64, Fault> {
    let Some(number) = text.strip_suffix('%') else {
        let fault = Fault::new("the percent sign is missing");
        return Err(match text.parse::<i64>() {
            Ok(number) => fault.help(format!("write \"{number}%\"")),
            Err(_) => {
                Fault::new("not a percentage").help("write an integer and a percent sign: \"25%\"")
            }
        });
    };
    let digits = number.strip_prefix('-').unwrap_or(number);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(
            Fault::new("not a percentage").help("write an integer and a percent sign: \"25%\"")
        );
    }
    Ok(number.parse().unwrap_or(i64::MAX))
}

/// One of a key's words.
pub fn word(text: &str, words: &'static [&'static str]) -> Result<&'static str, Fault> {
    if let Some(found) = words.iter().find(|w| **w == text) {
        return Ok(found);
    }
    let fault = Fault::new(format!("not one of {}", quoted_list(words)));
    Err(match nearest(text, words.iter().copied()) {
        Some(near) => fault.help(format!("did you mean `{near}`?")),
        None => fault,
    })
}

/// `` `a`, `b` and `c` ``.
pub fn quoted_list<S: AsRef<str>>(words: &[S]) -> String {
    let quoted: Vec<String> = words.iter().map(|w| format!("`{}`", w.as_ref())).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

/// Microseconds as a policy would write them: `3ms`, `1.5ms`, `100us`.
pub fn show_us(us: u64) -> String {
    match us {
        0 => "0us".to_owned(),
        _ if us.is_multiple_of(1_000_000) => format!("{}s", us / 1_000_000),
        _ if us.is_multiple_of(1_000) => format!("{}ms", us / 1_000),
        _ if us > 1_000 => {
            let text = format!("{}.{:03}", us / 1_000, us % 1_000);
            format!("{}ms", text.trim_end_matches('0'))
        }
        _ => format!("{us}us"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_digits_a_fraction_and_a_unit() {
        let good = [
            ("20ms", 20_000),
            ("20000us", 20_000),
            ("0.5ms", 500),
            ("1s", 1_000_000),
            ("1.000001s", 1_000_001),
            ("1.0us", 1),
            ("0us", 0),
            ("007ms", 7_000),
        ];
        for (text, us) in good {
            assert_eq!(duration_us(text), Ok(us), "{text}");
        }
        let bad = [
            "", "20", "20 ms", "1m", "20MS", "-5ms", "+5ms", "20msec", ".5ms", "1.ms", "0.5us",
            "ms", "1,5ms", "20ms ", " 20ms", "1e3us", "0x10ms", "1.2.3ms", "２ms",
        ];
        for text in bad {
            assert!(duration_us(text).is_err(), "{text}");
        }
        assert_eq!(duration_us("99999999999999999999s"), Ok(u64::MAX));
    }

    #[test]
    fn a_wrong_unit_is_told_how_to_be_right() {
        assert_eq!(
            duration_us("20MS").unwrap_err().help.as_deref(),
            Some("write \"20ms\"")
        );
        assert_eq!(
            duration_us("20 ms").unwrap_err().help.as_deref(),
            Some("write \"20ms\"")
        );
        assert_eq!(
            duration_us("20").unwrap_err().help.as_deref(),
            Some("units are us, ms and s: \"20ms\"")
        );
    }

    #[test]
    fn percentages_are_integers_with_a_sign() {
        assert_eq!(percent("25%"), Ok(25));
        assert_eq!(percent("-5%"), Ok(-5));
        for text in ["25", "2.5%", "%", "-%", "25 %", "x%", ""] {
            assert!(percent(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shown_durations_read_back_as_themselves() {
        for us in [
            0, 1, 100, 999, 1_000, 1_001, 1_500, 3_000, 20_000, 999_999, 1_000_000, 1_500_000,
        ] {
            assert_eq!(duration_us(&show_us(us)), Ok(us));
        }
    }
}
