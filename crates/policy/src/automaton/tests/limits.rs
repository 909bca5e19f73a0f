//! Sizes, and what is refused.

use super::*;
use crate::image::{MAX_DFAS, MAX_NAME_UNITS, MAX_PATH_UNITS};

struct Size {
    dfas: Vec<usize>,
    units: usize,
    kib: usize,
    work: usize,
}

fn size(regexes: &[String], domain: Domain) -> Size {
    let (positions, rows) = (positions(regexes, domain), rows(regexes.len()));
    let members = members(regexes, &positions, &rows);
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
    let members = members(&regexes, &positions, &rows);
    let TooLarge(chosen) = plan(&members, Domain::Path, &mut Work::new(10_000)).unwrap_err();
    assert!(!chosen.is_empty());
}

/// What the limits allow to be written must be refused with little work, however it is written.
#[test]
fn as_many_patterns_as_can_be_written_are_refused_early() {
    for (regexes, domain) in [
        (numbered(4096, |i| format!("/[^/]*a{i}[^/]*")), Domain::Path),
        (numbered(4096, |i| format!(".*a{i}.*b.*")), Domain::Name),
        (numbered(2048, |i| format!("/x.*a{i}.*b{i}")), Domain::Path),
    ] {
        let (positions, rows) = (positions(&regexes, domain), rows(regexes.len()));
        let members = members(&regexes, &positions, &rows);
        let mut work = Work::new(WORK);
        let TooLarge(chosen) = plan(&members, domain, &mut work).unwrap_err();
        assert!(!chosen.is_empty());
        let steps = WORK - work.left();
        assert!(steps < WORK / 4, "{}: {steps} steps", regexes[0]);
    }
}

#[test]
#[ignore = "prints sizes and steps of the large workloads for comparison"]
#[expect(
    clippy::disallowed_methods,
    reason = "a report for people, asked for by name"
)]
fn report_workloads() {
    let repeated = |n| numbered(n, |i| format!(".*a{i}.*b{i}.*c{i}.*"));
    let pods = |n| {
        let path = "/kubepods\\.slice/kubepods-burstable\\.slice/kubepods-burstable-pod";
        numbered(n, |i| {
            let (a, b) = (
                Random::new(i as u64).next_u64(),
                Random::new(i as u64 + 77).next_u64(),
            );
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
