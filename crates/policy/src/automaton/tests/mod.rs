//! Equality with the `regex` crate, and sizes that must grow with the sum of the patterns.

mod equality;
mod limits;

use super::*;
use crate::generate::Random;

fn read(regex: &str, domain: Domain) -> Result<Positions, Refusal> {
    Positions::new(regex, domain, &mut Work::new(WORK))
}

fn positions(regexes: &[String], domain: Domain) -> Vec<Positions> {
    let read = |r: &String| read(r, domain).unwrap_or_else(|e| panic!("{r}: {e:?}"));
    regexes.iter().map(read).collect()
}

/// One bit for each pattern.
fn rows(count: usize) -> Vec<Vec<u64>> {
    let words = count.div_ceil(64);
    (0..count)
        .map(|i| {
            (0..words)
                .map(|w| if w == i / 64 { 1 << (i % 64) } else { 0 })
                .collect()
        })
        .collect()
}

fn members<'a>(
    regexes: &'a [String],
    positions: &'a [Positions],
    rows: &'a [Vec<u64>],
) -> Vec<Member<'a>> {
    regexes
        .iter()
        .zip(positions)
        .zip(rows)
        .map(|((text, positions), row)| Member {
            positions,
            row,
            text,
        })
        .collect()
}

fn build(regexes: &[String], domain: Domain) -> Result<Automata, TooLarge> {
    let (positions, rows) = (positions(regexes, domain), rows(regexes.len()));
    let members = members(regexes, &positions, &rows);
    plan(&members, domain, &mut Work::new(WORK))
}

/// Patterns as operators write them: n of a mix of contains, prefix, suffix, two-star and regexes.
fn name_workload(n: usize) -> Vec<String> {
    let mut random = Random::new(3);
    (0..n)
        .map(|i| {
            let word = |random: &mut Random| -> String {
                (0..3 + random.below(4))
                    .map(|_| char::from(b'a' + random.below(26) as u8))
                    .collect()
            };
            let (a, b) = (word(&mut random), word(&mut random));
            match i % 25 {
                0..=5 => format!(".*{a}.*"),
                6..=11 => format!("{a}.*"),
                12..=17 => format!(".*{a}"),
                18..=21 => format!(".*{a}.*{}.*", &b[..2]),
                _ => format!("{a}-[0-9]+(?:-{})?", &b[..2]),
            }
        })
        .collect()
}

fn path_workload(n: usize) -> Vec<String> {
    let mut random = Random::new(4);
    (0..n)
        .map(|i| {
            let a = format!("svc{i}-{}", random.below(1000));
            match i % 25 {
                0..=5 => format!(".*/{a}\\.service(?:/.*)?"),
                6..=11 => format!("/system\\.slice/{a}(?:/.*)?"),
                12..=17 => format!("/{}/[^/]+/p{a}[^/]*(?:/.*)?", random.pick(&["a", "b", "c"])),
                18..=21 => format!(".*/d-{a}-[^/]*\\.scope"),
                _ => format!(
                    "/kubepods.*{}.*{a}.*",
                    random.pick(&["burstable", "besteffort"])
                ),
            }
        })
        .collect()
}

fn words_of(regexes: &[String], random: &mut Random, domain: Domain) -> Vec<Vec<u8>> {
    let letters = b"abcdefgh-s0";
    (0..100)
        .map(|_| {
            // A pattern with its wildcards filled in, so that many values meet something.
            let pattern = &regexes[random.below(regexes.len())];
            let pattern = pattern.replace("(?:/.*)?", "/q").replace("\\.", ".");
            let mut value: Vec<u8> = Vec::new();
            let mut rest = pattern.as_str();
            while let Some(first) = rest.chars().next() {
                let wild = ["[^/]+", "[^/]*", "[0-9]+", ".*"]
                    .iter()
                    .find(|w| rest.starts_with(**w));
                rest = &rest[wild.map_or(first.len_utf8(), |w| w.len())..];
                match wild {
                    Some(&"[0-9]+") => value.push(b'7'),
                    Some(_) if value.last().is_none() && domain == Domain::Path => {
                        value.extend(b"/e")
                    }
                    Some(_) => value.push(letters[random.below(letters.len())]),
                    None => {
                        value.extend(first.to_string().bytes().filter(|b| !b"(?:)".contains(b)))
                    }
                }
            }
            if domain == Domain::Name {
                value.truncate(15);
            }
            value
        })
        .collect()
}

fn numbered(n: usize, of: impl Fn(usize) -> String) -> Vec<String> {
    (0..n).map(of).collect()
}
