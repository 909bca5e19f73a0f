//! Automata and units meet exactly the patterns that the `regex` crate does.

use regex::bytes::{Regex, RegexBuilder};

use super::*;

fn oracle(regex: &str) -> Regex {
    RegexBuilder::new(&format!("^(?:{regex})$"))
        .unicode(false)
        .dot_matches_new_line(true)
        .build()
        .unwrap()
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
    let mut random = Random::new(1);
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
    let mut random = Random::new(2);
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

#[test]
fn the_operators_mix_equals_the_regex_crate() {
    let mut random = Random::new(5);
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

#[test]
fn entangled_patterns_go_to_units_and_equal_the_regex_crate() {
    let regexes = numbered(100, |i| format!(".*a{i}.*b{i}.*"));
    let built = build(&regexes, Domain::Name).unwrap();
    assert!(
        built.units.units.len() > 10,
        "units are what this test is about"
    );
    let mut random = Random::new(6);
    let mut values = words_of(&regexes, &mut random, Domain::Name);
    values.extend((0..100).map(|i| format!("a{i}b{i}").into_bytes()));
    assert_equal(&regexes, &values, Domain::Name);
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
