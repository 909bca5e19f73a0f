//! Equality with the `regex` crate, and sizes that must grow with the sum of the patterns.

use regex::bytes::{Regex, RegexBuilder};

use super::*;
use crate::image::{MAX_DFAS, MAX_NAME_UNITS, MAX_PATH_UNITS};

/// SplitMix64: the same numbers on every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
}

fn oracle(regex: &str) -> Regex {
    RegexBuilder::new(&format!("^(?:{regex})$"))
        .unicode(false)
        .dot_matches_new_line(true)
        .build()
        .unwrap()
}

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

fn build(regexes: &[String], domain: Domain) -> Result<Automata, TooLarge> {
    let (positions, rows) = (positions(regexes, domain), rows(regexes.len()));
    let members: Vec<Member> = (0..regexes.len())
        .map(|i| Member {
            positions: &positions[i],
            row: &rows[i],
            text: &regexes[i],
        })
        .collect();
    plan(&members, domain, &mut Work::new(WORK))
}

/// The automata on their way over a value, as the kernel program walks them.
struct Walk<'a> {
    automata: &'a Automata,
    rows: &'a [Vec<u64>],
    states: Vec<usize>,
    active: Vec<u64>,
    met: Vec<u64>,
}

impl<'a> Walk<'a> {
    fn start(automata: &'a Automata, rows: &'a [Vec<u64>]) -> Self {
        let mut walk = Self {
            automata,
            rows,
            states: vec![0; automata.dfas.len()],
            active: automata.units.units.iter().map(|unit| unit.init).collect(),
            met: vec![0; rows[0].len()],
        };
        (0..walk.states.len()).for_each(|i| walk.enter(i, 0));
        walk
    }

    fn enter(&mut self, i: usize, state: usize) {
        self.states[i] = state;
        let dfa = &self.automata.dfas[i];
        or(&mut self.met, &dfa.rows[dfa.emit[state] as usize]);
    }

    fn step(&mut self, byte: u8) {
        for i in 0..self.states.len() {
            let dfa = &self.automata.dfas[i];
            let width = dfa.classes.representatives.len();
            let class = usize::from(dfa.classes.of[usize::from(byte)]);
            self.enter(i, usize::from(dfa.trans[self.states[i] * width + class]));
        }
        let units = &self.automata.units;
        let class = usize::from(units.classes.of[usize::from(byte)]);
        for (active, unit) in self.active.iter_mut().zip(&units.units) {
            let moving = *active & unit.masks[class];
            let moved = unit.from.iter().zip(unit.by);
            *active = moved.fold(0, |next, (from, by)| {
                next | (moving & from).rotate_left(u32::from(by))
            });
        }
    }

    fn end(&self) -> Vec<u64> {
        let mut met = self.met.clone();
        for (dfa, state) in self.automata.dfas.iter().zip(&self.states) {
            or(&mut met, &dfa.rows[dfa.fin[*state] as usize]);
        }
        for (active, unit) in self.active.iter().zip(&self.automata.units.units) {
            for (bit, member) in &unit.met {
                if active & unit.accept & 1 << bit != 0 {
                    or(&mut met, &self.rows[*member]);
                }
            }
        }
        met
    }
}

fn or(into: &mut [u64], row: &[u64]) {
    into.iter_mut()
        .zip(row)
        .for_each(|(word, bits)| *word |= bits);
}

/// Compares on every value, and for paths at every component boundary on the way.
fn assert_equal(regexes: &[String], values: &[Vec<u8>], domain: Domain) {
    let automata = build(regexes, domain).unwrap();
    let rows = rows(regexes.len());
    let oracles: Vec<Regex> = regexes.iter().map(|r| oracle(r)).collect();
    for value in values {
        let mut walk = Walk::start(&automata, &rows);
        for (at, byte) in value.iter().enumerate() {
            walk.step(*byte);
            let next = value.get(at + 1);
            if next.is_some() && (domain == Domain::Name || next != Some(&b'/')) {
                continue;
            }
            let met = walk.end();
            for (i, oracle) in oracles.iter().enumerate() {
                let expected = oracle.is_match(&value[..=at]);
                let found = met[i / 64] >> (i % 64) & 1 != 0;
                let shown = String::from_utf8_lossy(&value[..=at]);
                assert_eq!(found, expected, "`{}` on {shown:?}", regexes[i]);
            }
        }
    }
}

fn word(random: &mut Random) -> String {
    (0..1 + random.below(3))
        .map(|_| random.pick(&["a", "b", "c", "-", "x"]))
        .collect()
}

/// A random regex over a small alphabet, so that values often meet it.
fn regex(random: &mut Random, depth: usize) -> String {
    let leaf = depth == 0;
    match random.below(if leaf { 5 } else { 11 }) {
        0 | 1 => word(random),
        2 => random
            .pick(&[".", "[a-c]", "[^/]", "[^a]", r"\w", r"\xff", "(?-s:.)"])
            .to_owned(),
        3 => ".*".to_owned(),
        4 => random.pick(&["^", "$", "", "a", "(?i:AB)"]).to_owned(),
        5 => format!(
            "(?:{}|{})",
            regex(random, depth - 1),
            regex(random, depth - 1)
        ),
        6 => format!("(?:{})*", regex(random, depth - 1)),
        7 => format!("(?:{})?", regex(random, depth - 1)),
        8 => format!("(?:{}){{1,3}}", regex(random, depth - 1)),
        _ => format!("{}{}", regex(random, depth - 1), regex(random, depth - 1)),
    }
}

fn name(random: &mut Random) -> Vec<u8> {
    let letters = b"aabbccx-/\xff\n";
    (0..random.below(16))
        .map(|_| letters[random.below(letters.len())])
        .collect()
}

#[test]
fn random_regexes_on_names_equal_the_regex_crate() {
    let mut random = Random(1);
    for _ in 0..150 {
        let count = 1 + random.below(12);
        let regexes: Vec<String> = (0..count).map(|_| regex(&mut random, 3)).collect();
        let values: Vec<Vec<u8>> = (0..60).map(|_| name(&mut random)).collect();
        assert_equal(&regexes, &values, Domain::Name);
    }
}

/// What globs on cgroups are translated to.
fn path_glob(random: &mut Random) -> String {
    let mut regex = random.pick(&[".*/", "/", "/"]).to_owned();
    for i in 0..1 + random.below(3) {
        if i > 0 {
            regex += random.pick(&["/", "/", "(?:/.*)?/"]);
        }
        regex += &match random.below(5) {
            0 => "[^/]+".to_owned(),
            1 => format!("{}[^/]*", word(random)),
            2 => format!("[^/]*{}", word(random)),
            _ => word(random),
        };
    }
    regex + random.pick(&["", "(?:/.*)?", ".*"])
}

fn path(random: &mut Random) -> Vec<u8> {
    let mut path = Vec::new();
    for _ in 0..1 + random.below(5) {
        path.push(b'/');
        let long = 1 + random.below(4);
        path.extend((0..long).map(|_| b"abc-x\xff"[random.below(6)]));
    }
    path
}

#[test]
fn path_patterns_equal_the_regex_crate_at_every_component() {
    let mut random = Random(2);
    for _ in 0..150 {
        let count = 1 + random.below(20);
        let regexes: Vec<String> = (0..count)
            .map(|_| match random.below(4) {
                0 => format!("/{}", regex(&mut random, 3)),
                _ => path_glob(&mut random),
            })
            .collect();
        let values: Vec<Vec<u8>> = (0..60).map(|_| path(&mut random)).collect();
        assert_equal(&regexes, &values, Domain::Path);
    }
}

/// Patterns as operators write them: n of a mix of contains, prefix, suffix, two-star and regexes.
fn name_workload(n: usize) -> Vec<String> {
    let mut random = Random(3);
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
    let mut random = Random(4);
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

#[test]
fn the_operators_mix_equals_the_regex_crate() {
    let mut random = Random(5);
    let names = name_workload(250);
    assert_equal(
        &names,
        &words_of(&names, &mut random, Domain::Name),
        Domain::Name,
    );
    let paths = path_workload(250);
    assert_equal(
        &paths,
        &words_of(&paths, &mut random, Domain::Path),
        Domain::Path,
    );
}

struct Size {
    dfas: Vec<usize>,
    units: usize,
    kib: usize,
    work: usize,
}

fn size(regexes: &[String], domain: Domain) -> Size {
    let (positions, rows) = (positions(regexes, domain), rows(regexes.len()));
    let members: Vec<Member> = (0..regexes.len())
        .map(|i| Member {
            positions: &positions[i],
            row: &rows[i],
            text: &regexes[i],
        })
        .collect();
    let mut work = Work::new(WORK);
    let automata = plan(&members, domain, &mut work).unwrap();
    Size {
        dfas: automata.dfas.iter().map(Dfa::states).collect(),
        units: automata.units.units.len(),
        kib: automata
            .dfas
            .iter()
            .map(|dfa| 2 * dfa.trans.len())
            .sum::<usize>()
            / 1024,
        work: WORK - work.left(),
    }
}

fn numbered(n: usize, of: impl Fn(usize) -> String) -> Vec<String> {
    (0..n).map(of).collect()
}

#[test]
fn contains_patterns_stay_as_small_as_their_texts() {
    for (regexes, domain) in [
        (numbered(60, |i| format!(".*svc{i}-.*")), Domain::Name),
        (
            numbered(60, |i| format!(".*/svc{i}\\.service(?:/.*)?")),
            Domain::Path,
        ),
        (
            numbered(60, |i| format!("(?:/.*)?/svc{i}\\.service(?:/.*)?")),
            Domain::Path,
        ),
    ] {
        let size = size(&regexes, domain);
        let bytes: usize = regexes.iter().map(String::len).sum();
        assert_eq!((size.dfas.len(), size.units), (1, 0), "{}", regexes[0]);
        assert!(
            size.dfas[0] < bytes,
            "{}: {} states",
            regexes[0],
            size.dfas[0]
        );
    }
}

#[test]
fn the_operators_mix_fits_with_room_to_spare() {
    let limit = |n: usize| 20_000 * n;
    for n in [250, 500, 1000] {
        let names = size(&name_workload(n), Domain::Name);
        assert!(names.dfas.len() <= MAX_DFAS && names.units <= MAX_NAME_UNITS);
        assert!(
            names.kib < n && names.work < limit(n),
            "{n} names: {} steps",
            names.work
        );
        let paths = size(&path_workload(n), Domain::Path);
        assert!(paths.dfas.len() <= MAX_DFAS && paths.units <= MAX_PATH_UNITS);
        assert!(
            paths.kib < n && paths.work < 2 * limit(n),
            "{n} paths: {} steps",
            paths.work
        );
    }
}

#[test]
fn entangled_patterns_go_to_units_and_equal_the_regex_crate() {
    let regexes = numbered(100, |i| format!(".*a{i}.*b{i}.*"));
    let built = build(&regexes, Domain::Name).unwrap();
    assert!(
        built.units.units.len() > 10,
        "units are what this test is about"
    );
    let mut random = Random(6);
    let mut values = words_of(&regexes, &mut random, Domain::Name);
    values.extend((0..100).map(|i| format!("a{i}b{i}").into_bytes()));
    assert_equal(&regexes, &values, Domain::Name);
}

#[test]
fn what_cannot_be_kept_small_is_refused_by_index() {
    let mut regexes = vec![
        "/a/[^/]+".to_owned(),
        ".*a.{70}".to_owned(),
        "/b".to_owned(),
    ];
    assert_eq!(
        build(&regexes, Domain::Path).unwrap_err(),
        TooLarge(vec![1])
    );
    regexes.remove(1);
    assert!(build(&regexes, Domain::Path).is_ok());
    let many = numbered(1000, |i| format!(".*a{i}.*b{i}.*c{i}.*"));
    let TooLarge(chosen) = build(&many, Domain::Name).unwrap_err();
    assert!(!chosen.is_empty() && chosen.iter().all(|m| *m < many.len()));
}

#[test]
fn patterns_with_too_many_positions_are_refused() {
    for regex in ["a{5000}", r"(?u)/\w+x", "(?:a|a.){0,200}c"] {
        let refusal = read(regex, Domain::Path).unwrap_err();
        assert!(
            matches!(refusal, Refusal::TooLarge(_)),
            "{regex}: {refusal:?}"
        );
    }
}

#[test]
fn look_around_is_refused_except_at_the_ends() {
    for regex in [
        r"\bfoo",
        r"foo\B",
        "(?m)^foo",
        "(?m)foo$",
        "(?mR)foo$",
        r"\b{start}foo",
    ] {
        let refusal = read(regex, Domain::Name).unwrap_err();
        assert!(
            matches!(refusal, Refusal::Invalid(_)),
            "{regex}: {refusal:?}"
        );
    }
    let regexes = [
        "^foo$",
        "^^foo",
        "(?:^|x)a$",
        "a(?:$|b)",
        "a$b",
        "a^b",
        "$",
        "^.*$",
    ];
    let regexes = regexes.map(str::to_owned);
    let values = ["", "foo", "a", "xa", "ab", "afoo"].map(|v| v.as_bytes().to_vec());
    assert_equal(&regexes, &values, Domain::Name);
}

#[test]
fn the_shortest_name_is_known() {
    for (regex, shortest) in [
        ("", Some(0)),
        ("a?b+c{3}", Some(4)),
        ("abcdefghijklmno", Some(15)),
        ("abcdefghijklmnop.*", Some(16)),
        ("(?:a{20}|b{17})", Some(17)),
        ("a$b", None),
        ("[a&&b]", None),
        ("a{5000}", Some(5000)),
    ] {
        assert_eq!(
            read(regex, Domain::Name).unwrap().shortest,
            shortest,
            "{regex}"
        );
    }
}

#[test]
fn work_that_runs_out_is_an_error_and_not_a_hang() {
    let regexes = path_workload(250);
    let (positions, rows) = (positions(&regexes, Domain::Path), rows(regexes.len()));
    let members: Vec<Member> = (0..regexes.len())
        .map(|i| Member {
            positions: &positions[i],
            row: &rows[i],
            text: &regexes[i],
        })
        .collect();
    let TooLarge(chosen) = plan(&members, Domain::Path, &mut Work::new(10_000)).unwrap_err();
    assert!(!chosen.is_empty());
}

#[test]
#[ignore = "prints sizes and steps of the large workloads for comparison"]
fn report_workloads() {
    let repeated = |n| numbered(n, |i| format!(".*a{i}.*b{i}.*c{i}.*"));
    let pods = |n| {
        let path = "/kubepods\\.slice/kubepods-burstable\\.slice/kubepods-burstable-pod";
        numbered(n, |i| {
            let (a, b) = (Random(i as u64).next(), Random(i as u64 + 77).next());
            format!("{path}{a:016x}{b:016x}\\.slice(?:/.*)?")
        })
    };
    for (what, regexes, domain) in [
        ("names 250", name_workload(250), Domain::Name),
        ("names 500", name_workload(500), Domain::Name),
        ("names 1000", name_workload(1000), Domain::Name),
        ("paths 250", path_workload(250), Domain::Path),
        ("paths 500", path_workload(500), Domain::Path),
        ("paths 1000", path_workload(1000), Domain::Path),
        ("three stars 40", repeated(40), Domain::Name),
        ("three stars 160", repeated(160), Domain::Name),
        ("pods 500", pods(500), Domain::Path),
        ("pods 1000", pods(1000), Domain::Path),
    ] {
        let started = std::time::Instant::now();
        let size = size(&regexes, domain);
        println!(
            "{what}: dfas {:?}, {} KiB, {} units, {} steps, {:?}",
            size.dfas,
            size.kib,
            size.units,
            size.work,
            started.elapsed(),
        );
    }
}
