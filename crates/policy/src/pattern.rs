//! One pattern as written to one checked `Pattern`, with an equivalent regex on the whole value.
//!
//! Names and cgroup paths differ: names are cut to what the kernel keeps, paths are normalised to
//! one leading and no trailing slash. Faults point at the bytes of the text that show them.

use regex_syntax::hir::{Hir, Look};
use twopool_diag::{Code, Diagnostic, Findings};

use crate::glob;
use crate::limits::MAX_REGEX_BYTES;
use crate::options::{Form, PatternOptions, Text};
use crate::policy::{At, Pattern, PatternKind};
use crate::text::escape;
use crate::thread::{NAME_BYTES, cut};

/// A pattern on thread and process names.
pub fn name(options: &PatternOptions, diagnostics: &mut Findings) -> Option<Pattern> {
    let text = &options.text;
    let kind = kind_of(options);
    let at = At(Some(text.span));
    if kind == PatternKind::Exact {
        let kept = cut(text.value.as_bytes());
        if kept.len() < text.value.len() {
            diagnostics.push(too_long(text, kept));
        }
        let shown = std::str::from_utf8(kept).map_or_else(|_| escape(kept), str::to_owned);
        return Some(Pattern {
            kind,
            text: shown,
            bytes: kept.to_vec(),
            regex: glob::literal(kept),
            at,
        });
    }
    let bytes = text.value.clone().into_bytes();
    let regex = match kind {
        PatternKind::Prefix => format!("{}.*", glob::literal(&bytes)),
        PatternKind::Glob => glob_regex(text, glob::name_regex(&text.value), diagnostics)?,
        _ => regex(text, diagnostics)?,
    };
    Some(Pattern {
        kind,
        text: text.value.clone(),
        bytes,
        regex,
        at,
    })
}

/// A pattern on cgroup paths.
pub fn cgroup(options: &PatternOptions, diagnostics: &mut Findings) -> Option<Pattern> {
    let text = &options.text;
    let kind = kind_of(options);
    let at = At(Some(text.span));
    let (shown, regex) = match kind {
        PatternKind::Regex => (text.value.clone(), regex(text, diagnostics)?),
        PatternKind::Glob => {
            let regex = glob_regex(text, glob::path_regex(&text.value), diagnostics)?;
            let open = text.value.starts_with('{');
            (
                if open {
                    text.value.clone()
                } else {
                    normalise(&text.value)
                },
                regex,
            )
        }
        _ => {
            let path = normalise(&text.value);
            check_path(text, &path, diagnostics)?;
            let literal = glob::literal(path.as_bytes());
            let regex = match (kind, path.as_str()) {
                (PatternKind::Under, "/") => "/.*".to_owned(),
                (PatternKind::Under, _) => format!("{literal}(?:/.*)?"),
                _ => literal,
            };
            (path, regex)
        }
    };
    Some(Pattern {
        kind,
        bytes: shown.clone().into_bytes(),
        text: shown,
        regex,
        at,
    })
}

fn kind_of(options: &PatternOptions) -> PatternKind {
    match options.form {
        Form::Bare if options.text.value.contains(glob::CHARACTERS) => PatternKind::Glob,
        Form::Bare | Form::Exact => PatternKind::Exact,
        Form::Prefix => PatternKind::Prefix,
        Form::Under => PatternKind::Under,
        Form::Glob => PatternKind::Glob,
        Form::Regex => PatternKind::Regex,
    }
}

/// One leading and no trailing slash; the root is `/`.
pub fn normalise(path: &str) -> String {
    format!("/{}", path.trim_matches('/'))
}

/// Refuses what no cgroup path can be.
fn check_path(text: &Text, path: &str, diagnostics: &mut Findings) -> Option<()> {
    let bad = path[1..].split('/').find(|c| matches!(*c, "" | "." | ".."));
    let label = match bad {
        None => return Some(()),
        Some("") if path == "/" => return Some(()),
        Some("") => "an empty component".to_owned(),
        Some(dots) => format!("a component `{dots}`"),
    };
    diagnostics.push(
        Diagnostic::new(
            Code::InvalidValue,
            text.span,
            format!("no cgroup has the path `{path}`"),
        )
        .label(label),
    );
    None
}

fn too_long(text: &Text, kept: &[u8]) -> Diagnostic {
    let kept_text = escape(kept);
    Diagnostic::new(
        Code::NameTooLong,
        text.span,
        format!("name longer than {NAME_BYTES} bytes"),
    )
    .label(format!(
        "{} bytes; the kernel keeps `{kept_text}`, and so does the rule",
        text.value.len()
    ))
    .help(if text.value.contains(": ") {
        "a title that ps shows is not the thread's name; see /proc/PID/comm"
    } else {
        "write the name as the kernel keeps it, or use `prefix`"
    })
}

fn glob_regex(
    text: &Text,
    read: Result<String, glob::Fault>,
    diagnostics: &mut Findings,
) -> Option<String> {
    match read {
        Ok(regex) => Some(regex),
        Err(fault) => {
            let place = text.part(fault.range);
            let diagnostic =
                Diagnostic::new(Code::InvalidGlob, place, "invalid glob").label(fault.label);
            diagnostics.push(match fault.help {
                Some(help) => diagnostic.help(help),
                None => diagnostic,
            });
            None
        }
    }
}

// ---- regexes ---------------------------------------------------------------------------------

/// Checks a regex and returns it in a form that `(?:..)` can be put around.
fn regex(text: &Text, diagnostics: &mut Findings) -> Option<String> {
    match check_regex(&text.value) {
        Ok(regex) => Some(regex),
        Err(fault) => {
            let place = fault.range.map_or(text.span, |range| text.part(range));
            let diagnostic = Diagnostic::new(fault.code, place, fault.summary);
            let diagnostic = match fault.label {
                Some(label) => diagnostic.label(label),
                None => diagnostic,
            };
            diagnostics.push(match fault.help {
                Some(help) => diagnostic.help(help),
                None => diagnostic,
            });
            None
        }
    }
}

const WHOLE_VALUE: &str = "a regex matches the whole value: say what stands before and after, \
    as in `(.*-)?x(-.*)?`";
const TWO_RULES: &str = "\"everything but X\" takes two rules: an earlier `[[rule]]` that takes X, \
    then this one without the look-around; or add `not = { .. }` to this rule";

struct RegexFault {
    code: Code,
    range: Option<std::ops::Range<usize>>,
    summary: String,
    label: Option<String>,
    help: Option<String>,
}

fn check_regex(text: &str) -> Result<String, RegexFault> {
    let hir = parse_regex(text).map_err(|e| syntax_fault(text, &e))?;
    let looks = hir.properties().look_set();
    if looks.iter().any(|l| !matches!(l, Look::Start | Look::End)) {
        return Err(RegexFault {
            code: Code::InvalidRegex,
            range: None,
            summary: "this regex looks around".to_owned(),
            label: Some("word boundaries and `(?m)` anchors are not available".to_owned()),
            help: Some(WHOLE_VALUE.to_owned()),
        });
    }
    // A trailing comment of `(?x)` would swallow what is put behind; a newline ends it.
    let closed = if parse_regex(&format!("(?:{text})")).is_ok() {
        text.to_owned()
    } else {
        format!("{text}\n")
    };
    let built = regex::bytes::RegexBuilder::new(&format!("^(?:{closed})$"))
        .unicode(false)
        .dot_matches_new_line(true)
        .size_limit(MAX_REGEX_BYTES)
        .build();
    match built {
        Ok(_) => Ok(closed),
        Err(regex::Error::CompiledTooBig(_)) => Err(RegexFault {
            code: Code::PatternTooLarge,
            range: None,
            summary: "this regex is too large".to_owned(),
            label: Some(format!("more than {MAX_REGEX_BYTES} bytes once compiled")),
            help: Some("shorten its repetitions, or list plain names in a list instead".to_owned()),
        }),
        Err(error) => Err(RegexFault {
            code: Code::InvalidRegex,
            range: None,
            summary: "invalid regex".to_owned(),
            label: Some(error.to_string()),
            help: None,
        }),
    }
}

/// Whether a text would do as a regex.
pub fn is_regex(text: &str) -> bool {
    parse_regex(text).is_ok()
}

/// As the compiler of automata and the naive evaluator read a regex: `(?s-u)`, on bytes.
fn parse_regex(text: &str) -> Result<Hir, Box<regex_syntax::Error>> {
    regex_syntax::ParserBuilder::new()
        .unicode(false)
        .utf8(false)
        .dot_matches_new_line(true)
        .build()
        .parse(text)
        .map_err(Box::new)
}

fn syntax_fault(text: &str, error: &regex_syntax::Error) -> RegexFault {
    let (span, message) = match error {
        regex_syntax::Error::Parse(e) => (Some(e.span()), e.kind().to_string()),
        regex_syntax::Error::Translate(e) => (Some(e.span()), e.kind().to_string()),
        other => (None, other.to_string()),
    };
    let message = lower_first(&message);
    let look_around = matches!(
        error,
        regex_syntax::Error::Parse(e) if *e.kind() == regex_syntax::ast::ErrorKind::UnsupportedLookAround
    );
    let (label, help) = if look_around {
        (
            "look-around is not available".to_owned(),
            Some(TWO_RULES.to_owned()),
        )
    } else if text.starts_with('*') {
        (
            message,
            Some("this reads like a glob: write it as a plain string or as `glob = ..`".to_owned()),
        )
    } else if let Some(all) = braced(text) {
        let help = format!(
            "alternatives in a regex are written `({})`",
            all.replace(',', "|")
        );
        (message, Some(help))
    } else if text.contains("\\p") || !text.is_ascii() {
        (
            message,
            Some("regexes match bytes; `(?u)` turns Unicode on".to_owned()),
        )
    } else {
        (message, None)
    };
    RegexFault {
        code: Code::InvalidRegex,
        range: span
            .map(|s| s.start.offset..s.end.offset.max(s.start.offset + 1).min(text.len().max(1))),
        summary: "invalid regex".to_owned(),
        label: Some(label),
        help,
    }
}

/// The inside of a glob's `{a,b}`.
fn braced(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('{')?;
    let (inside, _) = rest.split_once('}')?;
    let is_count = inside
        .chars()
        .all(|c| c.is_ascii_digit() || ", ".contains(c));
    (inside.contains(',') && !is_count).then_some(inside)
}

/// The engine begins some of its messages with a capital.
fn lower_first(message: &str) -> String {
    let mut chars = message.chars();
    chars
        .next()
        .map(|first| first.to_lowercase().chain(chars).collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> (Code, String) {
        let fault = check_regex(text)
            .err()
            .unwrap_or_else(|| panic!("{text} is accepted"));
        (
            fault.code,
            format!(
                "{} {}",
                fault.label.unwrap_or_default(),
                fault.help.unwrap_or_default()
            ),
        )
    }

    #[test]
    fn look_around_names_the_way_out() {
        let (code, words) = fault("^(?!java).*");
        assert_eq!(code, Code::InvalidRegex);
        assert!(
            words.contains("two rules") && words.contains("`not"),
            "{words}"
        );
        assert_eq!(fault(r"\bjava").0, Code::InvalidRegex);
        assert_eq!(fault("(?m)^a$").0, Code::InvalidRegex);
    }

    #[test]
    fn bytes_that_are_not_text_can_be_matched() {
        assert!(check_regex(r"(?-u)\xff").is_ok());
        assert!(check_regex(r"a\xff").is_ok());
        assert!(check_regex("(?u)\u{e4}+").is_ok());
    }

    #[test]
    fn a_regex_cannot_break_out_of_its_group() {
        assert_eq!(fault("a)(b").0, Code::InvalidRegex);
        let closed = check_regex("(?x) a # comment").ok().unwrap();
        assert!(parse_regex(&format!("(?:{closed})b")).is_ok());
    }

    #[test]
    fn a_regex_beyond_the_limit_is_named_so() {
        assert_eq!(fault(r"\w{1000}{100}").0, Code::PatternTooLarge);
    }

    #[test]
    fn paths_are_normalised() {
        for path in ["/a/b", "a/b", "a/b/", "/a/b/", "//a/b//"] {
            assert_eq!(normalise(path), "/a/b");
        }
        assert_eq!(normalise("/"), "/");
        assert_eq!(normalise(""), "/");
    }
}
