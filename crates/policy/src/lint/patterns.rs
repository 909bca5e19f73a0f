//! Lints on one pattern as it was written: escapes, blanks, brackets, work queues.

use twopool_diag::{Code, Diagnostic, Findings};

use super::forms;
use crate::glob;
use crate::options::{ConditionOptions, Form, PatternOptions};

/// All patterns of one table of conditions.
pub fn lint(conditions: &ConditionOptions, found: &mut Findings) {
    let names = [
        ("thread", &conditions.thread),
        ("process", &conditions.process),
    ];
    for (key, patterns) in names {
        let patterns = patterns.as_deref().unwrap_or_default();
        for pattern in patterns {
            escapes(pattern, found);
            control_characters(pattern, found);
            blanks(pattern, found);
            literal_brackets(pattern, found);
            workqueue(pattern, found);
        }
        forms::names(key, patterns, found);
    }
    if let Some(cgroups) = &conditions.cgroup {
        lint_cgroups("cgroup", cgroups, found);
    }
}

/// The patterns of one condition on cgroups.
pub fn lint_cgroups(key: &str, patterns: &[PatternOptions], found: &mut Findings) {
    for pattern in patterns {
        escapes(pattern, found);
        control_characters(pattern, found);
    }
    forms::cgroups(key, patterns, found);
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

fn escapes(pattern: &PatternOptions, found: &mut Findings) {
    let text = &pattern.text;
    if let Some(place) = text.escape {
        found.push(
            Diagnostic::new(Code::SuspiciousEscape, place, "an escape that TOML replaces by another character")
                .label(format!("the pattern is `{}`", crate::text::escape(text.value.as_bytes())))
                .help("in single quotes, '..', backslashes stand for themselves: a unit name keeps its `\\x2d`"),
        );
    }
}

/// A tab is the one control character that may stand between quotes as it is, and looks like a blank.
fn control_characters(pattern: &PatternOptions, found: &mut Findings) {
    let text = &pattern.text;
    // What came of an escape has been doubted already.
    if text.escape.is_none() && text.value.contains('\t') {
        let summary = "a control character in a pattern";
        found.push(
            Diagnostic::new(Code::ControlCharacter, text.span, summary)
                .label(format!(
                    "the pattern is `{}`",
                    crate::text::escape(text.value.as_bytes())
                ))
                .help("delete it, or write `?` in a glob for a name that has one"),
        );
    }
}

fn blanks(pattern: &PatternOptions, found: &mut Findings) {
    let text = &pattern.text.value;
    let leading = text.starts_with(' ') && pattern.form != Form::Regex;
    // A prefix may well end in a blank, and so may a name that the kernel cut there.
    let trailing = text.ends_with(' ') && (is_exact(pattern) || is_glob(pattern));
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
