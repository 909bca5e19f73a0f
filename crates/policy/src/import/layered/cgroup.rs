//! What a block asks of the cgroup's path, as one condition.
//!
//! scx_layered compares with the path without its first slash and with one at its end: `a/b/`, and
//! `/` for the root. A policy's paths are `/a/b`, and `/` for the root. Its regexes search in the
//! directory's name instead: `/sys/fs/cgroup/a/b`.

use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::{Anchored, util::start};
use regex_syntax::hir::{Hir, HirKind, Look};

use super::block::Verdict;
use super::name::literal;
use crate::text::toml_string;

/// Where cgroups are mounted, which is part of what regexes see.
const MOUNT: &str = "/sys/fs/cgroup";
/// Largest automaton that is built to look at a regex, in bytes.
const DFA_BYTES: usize = 8 << 20;

/// The questions; `None` and empty lists ask nothing.
#[derive(Debug, Default)]
pub struct Cgroup {
    prefix: Option<String>,
    suffix: Option<String>,
    contains: Vec<String>,
    regexes: Vec<String>,
    never: Option<String>,
}

impl Cgroup {
    /// The path begins so.
    pub fn prefix(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if text.contains("//") || (text.starts_with('/') && text != "/") {
            self.never = Some(format!("no path begins with `{text}`"));
        }
        match &self.prefix {
            Some(other) if other.starts_with(text) => {}
            Some(other) if !text.starts_with(other.as_str()) => {
                self.never = Some(format!("no path begins with `{other}` and `{text}`"));
            }
            _ => self.prefix = Some(text.to_owned()),
        }
    }

    /// The path ends so.
    pub fn suffix(&mut self, text: &str) {
        if text.is_empty() || text == "/" {
            return;
        }
        if text.contains("//") || !text.ends_with('/') {
            self.never = Some(format!(
                "every path ends with one slash, none with `{text}`"
            ));
        }
        match &self.suffix {
            Some(other) if other.ends_with(text) => {}
            Some(other) if !text.ends_with(other.as_str()) => {
                self.never = Some(format!("no path ends with `{other}` and `{text}`"));
            }
            _ => self.suffix = Some(text.to_owned()),
        }
    }

    /// The path has this somewhere.
    pub fn contains(&mut self, text: &str) {
        if text.is_empty() || text == "/" {
            return;
        }
        if text.contains("//") {
            self.never = Some(format!("no path has `{text}`"));
        }
        self.contains.push(text.to_owned());
    }

    /// The directory's name has a match of this somewhere.
    pub fn regex(&mut self, text: &str) {
        self.regexes.push(text.to_owned());
    }

    /// All questions as the value of a condition; `None`: every path fits.
    pub fn condition(&self) -> Result<Option<String>, Verdict> {
        if let Some(text) = &self.never {
            return Err(Verdict::Never(text.clone()));
        }
        // What is in the path's beginning, end or another part is in the path.
        let ends: Vec<&String> = self.prefix.iter().chain(&self.suffix).collect();
        let is_news = |index: usize| {
            let text = self.contains[index].as_str();
            let others = self.contains.iter().enumerate();
            let mut implied = others.filter(|(i, other)| {
                other.contains(text) && (other.len() > text.len() || *i < index)
            });
            !ends.iter().any(|end| end.contains(text)) && implied.next().is_none()
        };
        let parts: Vec<usize> = (0..self.contains.len()).filter(|i| is_news(*i)).collect();
        let parts: Vec<&String> = parts.iter().map(|i| &self.contains[*i]).collect();
        match (
            &self.prefix,
            &self.suffix,
            parts.as_slice(),
            self.regexes.as_slice(),
        ) {
            (None, None, [], []) => Ok(None),
            (Some(prefix), None, [], []) => begins(prefix).map(Some),
            (None, Some(suffix), [], []) => Ok(Some(regex(&format!("/.*{}", tail(suffix))))),
            (Some(prefix), Some(suffix), [], []) => begins_and_ends(prefix, suffix).map(Some),
            (None, None, [part], []) => Ok(Some(regex(&format!("/.*{}", inside(part))))),
            (None, None, [], [search]) => searched(search),
            _ => Err(Verdict::Inexpressible(vec![
                "several questions about one cgroup path do not fit into one pattern".to_owned(),
            ])),
        }
    }
}

fn regex(text: &str) -> String {
    format!("{{ regex = {} }}", toml_string(text))
}

/// A text that ends with a slash, as a regex, without it.
fn tail(text: &str) -> String {
    literal(text.strip_suffix('/').unwrap_or(text).as_bytes())
}

fn begins(prefix: &str) -> Result<String, Verdict> {
    if prefix == "/" {
        return Ok("{ exact = \"/\" }".to_owned());
    }
    let Some(path) = prefix.strip_suffix('/') else {
        return Ok(regex(&format!("/{}.*", literal(prefix.as_bytes()))));
    };
    if path
        .split('/')
        .any(|component| matches!(component, "." | ".."))
    {
        return Err(Verdict::Never(format!("no cgroup has the path `{path}`")));
    }
    Ok(format!(
        "{{ under = {} }}",
        toml_string(&format!("/{path}"))
    ))
}

fn inside(part: &str) -> String {
    match part.strip_suffix('/') {
        Some(part) => format!("{}(?:/.*)?", literal(part.as_bytes())),
        None => format!("{}.*", literal(part.as_bytes())),
    }
}

/// Both ends of one path, which may overlap: `a/b` and `b/` are the ends of `a/b/` too.
fn begins_and_ends(prefix: &str, suffix: &str) -> Result<String, Verdict> {
    if prefix == "/" {
        return Err(Verdict::Never(
            "the root is the only path that begins with a slash".to_owned(),
        ));
    }
    let mut all = vec![format!("{}.*{}", literal(prefix.as_bytes()), tail(suffix))];
    for shared in 1..=prefix.len().min(suffix.len()) {
        let Some(rest) = suffix.get(shared..) else {
            continue;
        };
        if prefix.as_bytes().ends_with(&suffix.as_bytes()[..shared]) {
            all.push(tail(&format!("{prefix}{rest}")));
        }
    }
    let one = match all.as_slice() {
        [only] => only.clone(),
        _ => format!("(?:{})", all.join("|")),
    };
    Ok(regex(&format!("/{one}")))
}

/// A search in the directory's name as a pattern on the whole path.
fn searched(text: &str) -> Result<Option<String>, Verdict> {
    let hir = match regex_syntax::parse(text) {
        Ok(hir) => hir,
        Err(_) => {
            return Err(Verdict::Malformed(format!(
                "CgroupRegex `{text}` is no regex"
            )));
        }
    };
    let cannot = |why: &str| {
        Err(Verdict::Inexpressible(vec![format!(
            "CgroupRegex `{text}` {why}"
        )]))
    };
    let (at_start, body, at_end) = anchors(hir);
    if !body.properties().look_set().is_empty() {
        return cannot("has anchors or word boundaries inside");
    }
    let body = match at_start {
        true => behind_mount(&body),
        false if may_begin_in_mount(&body) => None,
        false => Some(body),
    };
    let Some(body) = body else {
        return cannot("has to do with the mount point, which is no part of a path");
    };
    let before = if at_start { "" } else { ".*" };
    let after = if at_end { "" } else { ".*" };
    let whole = format!("{before}(?u:{}){after}", ascii(&body));
    // The directory of the root ends without the slash that is the root's path.
    let root = regex::bytes::Regex::new(&format!("^(?s-u:{whole})$"));
    if root.map_or(true, |regex| regex.is_match(b"/")) {
        return cannot("may match the root's directory, which a pattern cannot tell from its path");
    }
    Ok(Some(regex(&whole)))
}

/// A regex in plain characters: a policy's text can hold no NUL, and nobody can read most others.
fn ascii(body: &Hir) -> String {
    let mut out = String::new();
    for c in body.to_string().chars() {
        match c {
            ' '..='~' => out.push(c),
            c => out.push_str(&format!("\\x{{{:x}}}", u32::from(c))),
        }
    }
    out
}

/// A regex without the anchors at its two ends, and which of them it had.
fn anchors(hir: Hir) -> (bool, Hir, bool) {
    let mut parts = match hir.into_kind() {
        HirKind::Concat(parts) => parts,
        kind => vec![rebuilt(kind)],
    };
    let is =
        |part: Option<&Hir>, look: Look| part.is_some_and(|p| *p.kind() == HirKind::Look(look));
    let at_start = is(parts.first(), Look::Start);
    if at_start {
        parts.remove(0);
    }
    let at_end = is(parts.last(), Look::End);
    if at_end {
        parts.pop();
    }
    (at_start, Hir::concat(parts), at_end)
}

fn rebuilt(kind: HirKind) -> Hir {
    match kind {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) => Hir::literal(literal.0),
        HirKind::Class(class) => Hir::class(class),
        HirKind::Look(look) => Hir::look(look),
        HirKind::Repetition(repetition) => Hir::repetition(repetition),
        HirKind::Capture(capture) => Hir::capture(capture),
        HirKind::Concat(parts) => Hir::concat(parts),
        HirKind::Alternation(parts) => Hir::alternation(parts),
    }
}

/// What is left of a regex that begins with the mount point and a slash; the slash stays.
fn behind_mount(body: &Hir) -> Option<Hir> {
    let mut parts = match body.kind() {
        HirKind::Concat(parts) => parts.clone(),
        _ => vec![body.clone()],
    };
    let HirKind::Literal(first) = parts.first()?.kind() else {
        return None;
    };
    let rest = first.0.strip_prefix(MOUNT.as_bytes())?;
    if !rest.starts_with(b"/") {
        return None;
    }
    parts[0] = Hir::literal(rest.to_vec());
    Some(Hir::concat(parts))
}

/// Whether a match could begin before the path does, of which only the first slash is known here.
/// True if that cannot be found out.
fn may_begin_in_mount(body: &Hir) -> bool {
    let config = dense::Config::new()
        .start_kind(StartKind::Anchored)
        .dfa_size_limit(Some(DFA_BYTES))
        .determinize_size_limit(Some(DFA_BYTES));
    let built = dense::Builder::new()
        .configure(config)
        .build_from_nfa(&match thompson(body) {
            Some(nfa) => nfa,
            None => return true,
        });
    let Ok(dfa) = built else { return true };
    let start = start::Config::new().anchored(Anchored::Yes);
    let Ok(start) = dfa.start_state(&start) else {
        return true;
    };
    (0..MOUNT.len()).any(|from| {
        let mut state = start;
        for byte in MOUNT[from..].bytes().chain([b'/']) {
            state = dfa.next_state(state, byte);
            // A match is seen one byte late.
            if dfa.is_match_state(state) || dfa.is_quit_state(state) {
                return true;
            }
            if dfa.is_dead_state(state) {
                return false;
            }
        }
        true
    })
}

fn thompson(body: &Hir) -> Option<regex_automata::nfa::thompson::NFA> {
    let config = regex_automata::nfa::thompson::Config::new().nfa_size_limit(Some(DFA_BYTES));
    regex_automata::nfa::thompson::Compiler::new()
        .configure(config)
        .build_from_hir(body)
        .ok()
}
