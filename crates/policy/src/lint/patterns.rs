//! Lints on one pattern as it was written: escapes, blanks, regexes in glob's clothing.

use twopool_diag::{Code, Diagnostic, Findings};

use crate::glob;
use crate::options::{ConditionOptions, Form, PatternOptions};

/// All patterns of one table of conditions.
pub fn lint(conditions: &ConditionOptions, found: &mut Findings) {
    for pattern in conditions
        .thread
        .iter()
        .chain(&conditions.process)
        .flatten()
    {
        common(pattern, found);
        blanks(pattern, found);
        literal_brackets(pattern, found);
        workqueue(pattern, found);
    }
    for pattern in conditions.cgroup.iter().flatten() {
        common(pattern, found);
    }
}

/// Whether a pattern names one value.
pub fn is_exact(pattern: &PatternOptions) -> bool {
    match pattern.form {
        Form::Exact => true,
        Form::Bare => !pattern.text.value.contains(glob::CHARACTERS),
        _ => false,
    }
}

fn is_glob(pattern: &PatternOptions) -> bool {
    pattern.form == Form::Glob || (pattern.form == Form::Bare && !is_exact(pattern))
}

fn common(pattern: &PatternOptions, found: &mut Findings) {
    let text = &pattern.text;
    if let Some(place) = text.escape {
        found.push(
            Diagnostic::new(Code::SuspiciousEscape, place, "an escape that TOML replaces by another character")
                .label(format!("the pattern is `{}`", crate::text::escape(text.value.as_bytes())))
                .help("in single quotes, '..', backslashes stand for themselves: a unit name keeps its `\\x2d`"),
        );
    }
    if pattern.form == Form::Regex {
        if text.value.ends_with("/*") {
            found.push(
                Diagnostic::new(
                    Code::LooksLikeGlob,
                    text.span,
                    "a regex that reads like a glob",
                )
                .label("`/*` is any number of slashes here")
                .help("write `/.*` in a regex, or use a glob"),
            );
        }
    } else if is_glob(pattern) || pattern.form == Form::Bare {
        looks_like_regex(pattern, found);
    }
}

/// Signs of a regex that mean something else in a glob, with what they are there.
const SIGNS: [(&str, &str); 6] = [
    (
        ".*",
        "in a glob the dot is a dot; if it is meant, write `[.]*`",
    ),
    (".+", "in a glob both are plain characters"),
    ("\\.", "in a glob the backslash is a plain character"),
    ("\\d", "in a glob the backslash is a plain character"),
    ("\\w", "in a glob the backslash is a plain character"),
    ("[^", "in a glob `[!..]` negates"),
];

fn looks_like_regex(pattern: &PatternOptions, found: &mut Findings) {
    let text = &pattern.text.value;
    let alternation = text.find('(').is_some_and(|open| {
        text[open..]
            .find('|')
            .is_some_and(|bar| text[open + bar..].contains(')'))
    });
    let sign = SIGNS.iter().find(|(sign, _)| text.contains(sign));
    let label = match sign {
        Some((sign, meaning)) => format!("`{sign}`: {meaning}"),
        None if text.starts_with('^') || (text.ends_with('$') && text.len() > 1) => {
            "a glob has no anchors; it always matches the whole value".to_owned()
        }
        None if alternation => "alternatives in a glob are written `{a,b}`".to_owned(),
        None => return,
    };
    found.push(
        Diagnostic::new(
            Code::LooksLikeRegex,
            pattern.text.span,
            "a glob that reads like a regex",
        )
        .label(label)
        .help("for a regex write `{ regex = '..' }`, for these very characters `{ exact = '..' }`"),
    );
}

fn blanks(pattern: &PatternOptions, found: &mut Findings) {
    let text = &pattern.text.value;
    let leading = text.starts_with([' ', '\t']) && pattern.form != Form::Regex;
    // A prefix may well end in a blank, and so may a name that the kernel cut there.
    let trailing = text.ends_with([' ', '\t']) && (is_exact(pattern) || is_glob(pattern));
    if leading || trailing {
        found.push(
            Diagnostic::new(
                Code::SuspiciousBlank,
                pattern.text.span,
                "a name with a blank at its end",
            )
            .label(if leading {
                "begins with a blank"
            } else {
                "ends with a blank"
            })
            .help("delete the blank, unless the thread's name has it"),
        );
    }
}

/// `runc:[2:INIT]` or `[kthreadd]`: brackets that belong to the name, read as a class.
fn literal_brackets(pattern: &PatternOptions, found: &mut Findings) {
    let text = &pattern.text.value;
    if pattern.form != Form::Bare || text.contains(['*', '?', '{']) {
        return;
    }
    let Some((open, close)) = text
        .find('[')
        .and_then(|o| Some((o, o + text[o..].find(']')?)))
    else {
        return;
    };
    let inside = &text[open + 1..close];
    let repeated = inside
        .bytes()
        .enumerate()
        .any(|(i, b)| inside.as_bytes()[..i].contains(&b));
    let whole = open == 0 && close + 1 == text.len() && inside.len() > 2 && !inside.contains('-');
    if repeated || whole {
        found.push(
            Diagnostic::new(
                Code::LooksLikeLiteral,
                pattern.text.span,
                "a bracket class that reads like part of a name",
            )
            .label(format!("`[{inside}]` matches one byte"))
            .help("write `{ exact = '..' }` for a name that has brackets"),
        );
    }
}

/// `kworker/0:1-events`: /proc adds the queue, the kernel's name ends before it.
fn workqueue(pattern: &PatternOptions, found: &mut Findings) {
    let text = &pattern.text.value;
    let kept = crate::thread::without_workqueue(text.as_bytes());
    if pattern.form != Form::Regex && kept.len() < text.len() {
        found.push(
            Diagnostic::new(
                Code::WorkqueueSuffix,
                pattern.text.span,
                "a kernel worker's name with its work queue",
            )
            .label("the part behind the number is added by /proc and changes all the time")
            .help(format!(
                "match `{}`, or all workers with `kworker/*`",
                String::from_utf8_lossy(kept)
            )),
        );
    }
}
