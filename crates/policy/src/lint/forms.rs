//! Patterns that read like another form than the one they have: a regex in a glob, a glob in a
//! regex, wildcards in a prefix or a path. Each finding shows the pattern as it was probably meant.
//!
//! Invariant: rare and right. What people write on purpose is left alone: `nginx.*` on a cgroup may
//! be a unit and its kinds, `https?` is a regex, and `exact` means what it says.

use twopool_diag::{Code, Diagnostic, Findings};

use crate::glob;
use crate::options::{Form, PatternOptions};
use crate::pattern::is_regex;
use crate::text::toml_string;

/// Where cgroup v2 is mounted. Cgroup paths begin below.
const MOUNT_POINTS: [&str; 2] = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"];

/// Bytes of a pattern that a message repeats.
const MAX_SHOWN: usize = 100;

/// All patterns of a condition on names.
pub fn names(key: &str, patterns: &[PatternOptions], found: &mut Findings) {
    for pattern in patterns {
        let text = pattern.text.value.as_str();
        let doubt = match pattern.form {
            Form::Bare | Form::Glob => regex_in_glob(text, regex_sign(text, false)),
            Form::Regex => glob_in_regex(text),
            Form::Prefix => wild_prefix(text),
            Form::Exact | Form::Under => None,
        };
        found.extend(doubt.map(|doubt| doubt.finding(key, patterns.len() == 1, pattern)));
    }
}

/// All patterns of a condition on cgroups.
pub fn cgroups(key: &str, patterns: &[PatternOptions], found: &mut Findings) {
    for pattern in patterns {
        let text = pattern.text.value.as_str();
        let doubt = mounted(pattern).or_else(|| match pattern.form {
            Form::Bare | Form::Glob => regex_in_glob(text, regex_sign(text, true)),
            Form::Regex => glob_in_regex(text),
            Form::Under => wild_under(text),
            Form::Exact | Form::Prefix => None,
        });
        found.extend(doubt.map(|doubt| doubt.finding(key, patterns.len() == 1, pattern)));
    }
}

/// Why a pattern is doubted, and what was probably meant.
struct Doubt {
    code: Code,
    summary: &'static str,
    label: String,
    /// The right value as TOML.
    better: String,
    /// The same text as it stands, said so that nobody doubts it.
    verbatim: Option<String>,
}

impl Doubt {
    /// `is_alone`: the pattern is all that the key has, so that the line can be shown.
    fn finding(self, key: &str, is_alone: bool, pattern: &PatternOptions) -> Diagnostic {
        let place = pattern.text.span;
        let found = Diagnostic::new(self.code, place, self.summary).label(self.label);
        if self.better.len() > MAX_SHOWN {
            return found.help(
                "a glob knows `*`, `?` and `[..]`; a regex is written `{ regex = '..' }` and takes the whole name",
            );
        }
        let mut help = match (is_alone, pattern.form) {
            (true, _) => format!("write `{key} = {}`", self.better),
            (false, Form::Bare) => format!("write `{}`", self.better),
            (false, _) => format!("write `{}` as one of a list of patterns", self.better),
        };
        if let Some(verbatim) = self.verbatim {
            help.push_str(&format!("; for these very characters `{verbatim}`"));
        }
        found.help(help)
    }
}

// ---- regexes in globs ------------------------------------------------------------------------

/// Signs of a regex that mean something else in a glob, with what they are there.
const SIGNS: [(&str, &str); 9] = [
    (".+", "in a glob both are plain characters"),
    ("]+", "in a glob a class is one byte and the plus a plus"),
    (")+", "in a glob both are plain characters"),
    (")?", "in a glob `?` is one byte"),
    ("\\.", "in a glob the backslash is a plain character"),
    ("\\d", "in a glob the backslash is a plain character"),
    ("\\w", "in a glob the backslash is a plain character"),
    ("\\s", "in a glob the backslash is a plain character"),
    ("[^", "in a glob `[!..]` negates"),
];

/// What in a glob reads like a regex, as the label says it.
fn regex_sign(text: &str, is_path: bool) -> Option<String> {
    let dots = text
        .match_indices(".*")
        .any(|(at, _)| !is_path || !is_unit_and_its_kinds(text, at));
    if dots {
        let label = "`.*`: in a glob the dot is a dot; if it is meant, write `[.]*`";
        return Some(label.to_owned());
    }
    if let Some((sign, meaning)) = SIGNS.iter().find(|(sign, _)| text.contains(sign)) {
        return Some(format!("`{sign}`: {meaning}"));
    }
    if has_count(text) {
        return Some("a glob cannot count; braces are alternatives".to_owned());
    }
    if text.len() > 1 && (text.starts_with('^') || text.ends_with('$')) {
        return Some("a glob has no anchors; it always matches the whole value".to_owned());
    }
    let mut sides = text.split('|');
    (text.contains('|') && sides.all(|side| !side.is_empty()))
        .then(|| "alternatives in a glob are written `{a,b}`".to_owned())
}

/// `nginx.*` at the end of a component: any file of that stem, and a fair glob.
fn is_unit_and_its_kinds(text: &str, at: usize) -> bool {
    let (before, behind) = (&text[..at], &text[at + 2..]);
    before.ends_with(|c: char| c.is_ascii_alphanumeric())
        && (behind.is_empty() || behind.starts_with('/'))
}

/// `[0-9]{2}`, `(ab){1,3}`.
fn has_count(text: &str) -> bool {
    text.match_indices('{').any(|(open, _)| {
        let behind = &text[open + 1..];
        let count = &behind[..behind.find('}').unwrap_or(0)];
        let is_count = !count.is_empty() && count.chars().all(|c| c.is_ascii_digit() || c == ',');
        is_count && text[..open].ends_with([']', ')'])
    })
}

fn regex_in_glob(text: &str, sign: Option<String>) -> Option<Doubt> {
    let label = sign?;
    let inner = text.strip_prefix('^').unwrap_or(text);
    let inner = inner.strip_suffix('$').unwrap_or(inner);
    let is_plain = |part: &str| !part.contains(['(', ')', '[', '{', '\\', '.', '+', '?', '*']);
    let negated = text.replace("[^", "[!");
    let better = if inner.len() < text.len() && is_plain(inner) && !inner.contains('|') {
        toml_string(inner)
    } else if text.contains('|') && is_plain(inner) {
        let all: Vec<String> = inner.split('|').map(toml_string).collect();
        format!("[{}]", all.join(", "))
    } else if let Some(braced) = braces(text) {
        toml_string(&braced)
    } else if negated != text && regex_sign(&negated, true).is_none() {
        toml_string(&negated)
    } else if is_regex(text) {
        format!("{{ regex = {} }}", single_quoted(text))
    } else {
        "{ regex = '..' }".to_owned()
    };
    let is_glob = text.contains(glob::CHARACTERS);
    let verbatim = (!is_glob && text.len() <= MAX_SHOWN)
        .then(|| format!("{{ exact = {} }}", toml_string(text)));
    Some(Doubt {
        code: Code::LooksLikeRegex,
        summary: "a glob that reads like a regex",
        label,
        better,
        verbatim,
    })
}

/// `(eu|us)-*` as a glob writes it, if nothing else in it is a regex.
fn braces(text: &str) -> Option<String> {
    let braced = text.replace('(', "{").replace('|', ",").replace(')', "}");
    let is_regex = SIGNS.iter().any(|(sign, _)| text.contains(sign));
    let is_glob = glob::name_regex(&braced).is_ok() && regex_sign(&braced, true).is_none();
    (text.contains('(') && text.contains('|') && is_glob && !is_regex).then_some(braced)
}

// ---- globs in regexes ------------------------------------------------------------------------

fn glob_in_regex(text: &str) -> Option<Doubt> {
    let label = if let Some(at) = lone_star(text) {
        let what = text[..at].chars().next_back()?;
        format!("`{what}*` is any number of `{what}` here")
    } else if text.split("[!").skip(1).any(|rest| !rest.starts_with('-')) {
        "in a regex `[^..]` negates".to_owned()
    } else {
        return None;
    };
    let regex = text
        .replace("**", "*")
        .replace('*', ".*")
        .replace("[!", "[^");
    Some(Doubt {
        code: Code::LooksLikeGlob,
        summary: "a regex that reads like a glob",
        label,
        better: match text.strip_suffix("/**") {
            Some(path) if !path.contains(glob::CHARACTERS) && !path.is_empty() => {
                format!("{{ under = {} }}", toml_string(path))
            }
            _ if text.contains(['(', '\\', '|', '+']) => {
                format!("{{ regex = {} }}", single_quoted(&regex))
            }
            _ => toml_string(text),
        },
        verbatim: None,
    })
}

/// A star behind a plain character in a text that has nothing else of a regex, or at the end of a
/// path.
fn lone_star(text: &str) -> Option<usize> {
    if text.ends_with("/*") {
        return Some(text.len() - 1);
    }
    let at = text.find('*').filter(|at| *at > 0)?;
    let is_regex = text.contains(['(', ')', '[', ']', '{', '}', '|', '^', '$', '\\', '+', '?']);
    let is_wild = text.contains(".*");
    (!is_regex && !is_wild).then_some(at)
}

// ---- wildcards in prefixes and paths ---------------------------------------------------------

const PLAIN_PREFIX: &str = "a prefix has no wildcards; this is a plain character";
const PLAIN_PATH: &str = "`under` has no wildcards; this is a plain character";

fn wild_prefix(text: &str) -> Option<Doubt> {
    let doubt = |code, summary, label: &str, better| {
        Some(Doubt {
            code,
            summary,
            label: label.to_owned(),
            better,
            verbatim: None,
        })
    };
    let prefix = |text: &str| format!("{{ prefix = {} }}", toml_string(text));
    let inner = text.strip_prefix('^').unwrap_or(text);
    let inner = inner.strip_suffix(".*").unwrap_or(inner);
    if inner.len() < text.len() && !inner.is_empty() && !inner.contains(['*', '?']) {
        let summary = "a prefix that reads like a regex";
        return doubt(Code::LooksLikeRegex, summary, PLAIN_PREFIX, prefix(inner));
    }
    if !text.contains(['*', '?']) {
        return None;
    }
    let inner = text.trim_end_matches('*');
    let better = match inner.is_empty() || inner.contains(['*', '?']) {
        true => toml_string(&format!("{inner}*")),
        false => prefix(inner),
    };
    let summary = "a prefix that reads like a glob";
    doubt(Code::LooksLikeGlob, summary, PLAIN_PREFIX, better)
}

fn wild_under(text: &str) -> Option<Doubt> {
    if !text.contains(['*', '?']) {
        return None;
    }
    let path = text.trim_end_matches(['*', '/']);
    let better = match path.contains(['*', '?']) {
        true => toml_string(&format!("{path}/**")),
        false if path.is_empty() => "{ under = \"/\" }".to_owned(),
        false => format!("{{ under = {} }}", toml_string(path)),
    };
    Some(Doubt {
        code: Code::LooksLikeGlob,
        summary: "a path that reads like a glob",
        label: PLAIN_PATH.to_owned(),
        better,
        verbatim: None,
    })
}

// ---- paths with the mount point --------------------------------------------------------------

fn mounted(pattern: &PatternOptions) -> Option<Doubt> {
    let text = pattern.text.value.trim_start_matches('/');
    let below = MOUNT_POINTS.iter().find_map(|mount| {
        let rest = text.strip_prefix(&mount[1..])?;
        (rest.is_empty() || rest.starts_with('/')).then_some(rest)
    })?;
    let path = match below.is_empty() {
        true => "/",
        false => below,
    };
    let better = match pattern.form {
        Form::Bare | Form::Prefix => toml_string(path),
        Form::Exact => format!("{{ exact = {} }}", toml_string(path)),
        Form::Under => format!("{{ under = {} }}", toml_string(path)),
        Form::Glob => format!("{{ glob = {} }}", toml_string(path)),
        Form::Regex => format!("{{ regex = {} }}", single_quoted(path)),
    };
    Some(Doubt {
        code: Code::CgroupMountPoint,
        summary: "a cgroup path with its mount point",
        label: "a cgroup's path begins below /sys/fs/cgroup".to_owned(),
        better,
        verbatim: None,
    })
}

/// As people write regexes: in single quotes wherever these can hold them.
fn single_quoted(text: &str) -> String {
    match text.contains('\'') || text.chars().any(char::is_control) {
        true => toml_string(text),
        false => format!("'{text}'"),
    }
}
