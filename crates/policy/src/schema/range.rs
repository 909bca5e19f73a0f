//! Regular expressions for numbers that are written in strings: durations and percentages within a
//! range, so that an editor refuses `"2s"` where at most `"1s"` may stand.
//!
//! A range of numbers is a union of digit patterns: numbers of one length share leading digits, and
//! behind the first digit that differs everything from 0 to 9 may follow.

use crate::options::UNITS;

/// Durations from `min_us` to `max_us`, as `duration_us` reads them; `off` allows that word too.
pub fn durations(min_us: u64, max_us: u64, off: bool) -> String {
    let mut all: Vec<String> = off.then(|| "off".to_owned()).into_iter().collect();
    for (unit, scale, places) in UNITS {
        let (low, high) = (
            (min_us / scale, min_us % scale),
            (max_us / scale, max_us % scale),
        );
        let numbers = decimals(low, high, scale, places);
        if !numbers.is_empty() {
            all.push(format!("0*{}{unit}", group(&numbers)));
        }
    }
    format!("^{}$", group(&all))
}

/// Percentages from `min` to `max`, as `percent` reads them, which takes `-0%` for what it is.
pub fn percentages(min: u64, max: u64) -> String {
    let minus_zero = if min == 0 { "-?0+|" } else { "" };
    format!("^(?:{minus_zero}0*{})%$", group(&integers(min, max)))
}

/// Decimal numbers from `low` to `high`, each a whole part and a fraction in parts of `scale`.
fn decimals(low: (u64, u64), high: (u64, u64), scale: u64, places: usize) -> Vec<String> {
    let (low_whole, low_part) = low;
    let (high_whole, high_part) = high;
    let with = |whole: Vec<String>, min: u64, max: u64| -> Option<String> {
        Some(format!("{}{}", group(&whole), fraction(min, max, places)?))
    };
    if low_whole == high_whole {
        let same = with(integers(low_whole, low_whole), low_part, high_part);
        return same.into_iter().collect();
    }
    let mut all = Vec::new();
    all.extend(with(integers(low_whole, low_whole), low_part, scale - 1));
    if low_whole + 1 < high_whole {
        all.extend(with(integers(low_whole + 1, high_whole - 1), 0, scale - 1));
    }
    all.extend(with(integers(high_whole, high_whole), 0, high_part));
    all
}

/// What may follow a whole part so that the fraction, in units of the last of `places` digits, is
/// from `min` to `max`. Zeros at the end may be left out or added; so may a fraction of zero.
fn fraction(min: u64, max: u64, places: usize) -> Option<String> {
    let zeros = r"(?:\.0+)?";
    if places == 0 || max == 0 {
        return (min == 0).then(|| zeros.to_owned());
    }
    let mut all = Vec::new();
    for digits in 1..=places {
        let step = 10_u64.pow((places - digits) as u32);
        let (low, high) = (min.div_ceil(step), max / step);
        if low > high {
            continue;
        }
        let texts = same_length(&padded(low, digits), &padded(high, digits));
        let more = if digits == places { "0*" } else { "" };
        all.push(format!("{}{more}", group(&texts)));
    }
    let optional = if min == 0 { "?" } else { "" };
    Some(format!(r"(?:\.{}){optional}", group(&all)))
}

fn padded(number: u64, digits: usize) -> String {
    format!("{number:0digits$}")
}

/// Integers from `min` to `max` without leading zeros.
fn integers(min: u64, max: u64) -> Vec<String> {
    let mut all = Vec::new();
    let mut low = min;
    loop {
        // The greatest number that has as many digits.
        let longest = 10_u64
            .checked_pow(low.to_string().len() as u32)
            .map_or(u64::MAX, |next| next - 1);
        let high = longest.min(max);
        all.extend(same_length(&low.to_string(), &high.to_string()));
        if high == max {
            return all;
        }
        low = high + 1;
    }
}

/// Digit strings from `low` to `high`, which have one length.
fn same_length(low: &str, high: &str) -> Vec<String> {
    let rest = low.len().saturating_sub(1);
    let (Some(first), Some(last)) = (low.bytes().next(), high.bytes().next()) else {
        return vec![String::new()];
    };
    if low.bytes().all(|b| b == b'0') && high.bytes().all(|b| b == b'9') {
        return vec![any_digits(low.len())];
    }
    if first == last {
        return prefixed(first, same_length(&low[1..], &high[1..]));
    }
    // A first digit behind which everything may follow joins those in the middle.
    let (mut all, mut from, mut to) = (Vec::new(), first, last);
    if low[1..].bytes().any(|b| b != b'0') {
        all.extend(prefixed(first, same_length(&low[1..], &"9".repeat(rest))));
        from += 1;
    }
    if high[1..].bytes().any(|b| b != b'9') {
        all.extend(prefixed(last, same_length(&"0".repeat(rest), &high[1..])));
        to -= 1;
    }
    if from < to {
        let (from, to) = (char::from(from), char::from(to));
        all.push(format!("[{from}-{to}]{}", any_digits(rest)));
    } else if from == to {
        all.push(format!("{}{}", char::from(from), any_digits(rest)));
    }
    all
}

fn prefixed(digit: u8, texts: Vec<String>) -> Vec<String> {
    let digit = char::from(digit);
    texts.iter().map(|text| format!("{digit}{text}")).collect()
}

fn any_digits(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => "[0-9]".to_owned(),
        _ => format!("[0-9]{{{count}}}"),
    }
}

fn group(all: &[String]) -> String {
    match all {
        [only] => only.clone(),
        _ => format!("(?:{})", all.join("|")),
    }
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::*;
    use crate::keys::{KEYS, Kind};
    use crate::options::{duration_us, show_us};

    fn compiled(pattern: &str) -> Regex {
        Regex::new(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"))
    }

    /// Ways to write a number of microseconds, and some that are not allowed.
    fn spellings(us: u64) -> Vec<String> {
        let (ms, us_left) = (us / 1_000, us % 1_000);
        let (s, s_left) = (us / 1_000_000, us % 1_000_000);
        let mut all = vec![
            show_us(us),
            format!("{us}us"),
            format!("00{us}us"),
            format!("{us}.0us"),
            format!("{us}.5us"),
            format!("{ms}.{us_left:03}ms"),
            format!("{ms}.{us_left:03}00ms"),
            format!("{ms}.{us_left:03}1ms"),
            format!("0{s}.{s_left:06}s"),
            format!("{s}.{s_left:06}0s"),
            format!("{us} us"),
            format!("{us}"),
            format!("-{us}us"),
            format!("{ms}.ms"),
        ];
        let short = format!("{s}.{s_left:06}");
        all.push(format!("{}s", short.trim_end_matches('0')));
        all.push(format!("{ms}ms"));
        all.push(format!("{s}s"));
        all
    }

    #[test]
    fn a_duration_fits_the_pattern_exactly_if_it_is_in_range() {
        for key in KEYS {
            let Kind::Duration { min_us, max_us, .. } = key.kind else {
                continue;
            };
            let pattern = compiled(&durations(min_us, max_us, false));
            let mut tried = vec![0, 1, 7, 10_000_001, 999_999_999];
            for edge in [min_us, max_us, (min_us + max_us) / 3] {
                for step in [0, 1, 9, 10, 99, 1_000, 123_456] {
                    tried.extend([edge.saturating_sub(step), edge + step]);
                }
            }
            for text in tried.into_iter().flat_map(spellings) {
                let fits = duration_us(&text).is_ok_and(|us| (min_us..=max_us).contains(&us));
                assert_eq!(pattern.is_match(&text), fits, "{}: {text}", key.path);
            }
        }
    }

    #[test]
    fn a_percentage_fits_the_pattern_exactly_if_it_is_in_range() {
        for (min, max) in [(0, 100), (1, 100), (5, 5), (7, 23)] {
            let pattern = compiled(&percentages(min, max));
            for number in 0..1_200 {
                let fits = (min..=max).contains(&number);
                assert_eq!(pattern.is_match(&format!("{number}%")), fits, "{number}");
                assert_eq!(pattern.is_match(&format!("0{number}%")), fits, "{number}");
                assert!(!pattern.is_match(&format!("{number}")), "{number}");
                let minus = pattern.is_match(&format!("-{number}%"));
                assert_eq!(minus, number == 0 && min == 0, "{number}");
            }
        }
    }
}
