//! Diagnostics as rustc shows them: code, place, the line with its mark, help.

use std::borrow::Cow;
use std::ops::Range;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::{Diagnostic, FileId, Severity, SourceFile, Sources, Span};

const BOM: char = '\u{feff}';
/// Lines are never folded to a terminal's width: a report must not depend on where it is read.
const WIDTH: usize = 160;

/// All diagnostics, one after the other, each followed by an empty line.
pub fn human(sources: &Sources, diagnostics: &[Diagnostic], color: bool) -> String {
    let renderer = if color {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    let renderer = renderer.term_width(WIDTH).decor_style(DecorStyle::Ascii);
    let mut out = String::new();
    for diagnostic in diagnostics {
        out.push_str(&renderer.render(&[group(sources, diagnostic)]));
        out.push_str("\n\n");
    }
    out
}

/// `2 errors, 1 warning`, or `None` if there is neither.
pub fn summary_line(diagnostics: &[Diagnostic]) -> Option<String> {
    let errors = diagnostics
        .iter()
        .filter(|d| d.severity() == Severity::Error)
        .count();
    let warnings = diagnostics.len() - errors;
    let count = |n: usize, what: &str| match n {
        0 => None,
        1 => Some(format!("1 {what}")),
        n => Some(format!("{n} {what}s")),
    };
    let parts: Vec<String> = [count(errors, "error"), count(warnings, "warning")]
        .into_iter()
        .flatten()
        .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn group<'a>(sources: &'a Sources, diagnostic: &'a Diagnostic) -> Group<'a> {
    let level = match diagnostic.severity() {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level
        .primary_title(&diagnostic.summary)
        .id(diagnostic.code.as_str());
    let mut group = match diagnostic.span {
        Some(span) => group_at(sources, diagnostic, span, Group::with_title(title)),
        None => Group::with_title(title),
    };
    if diagnostic.span.is_none()
        && let Some(label) = &diagnostic.label
    {
        group = group.element(Level::NOTE.message(label));
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help));
    }
    group
}

/// One snippet a file: the primary place with its label, and what is related to it.
fn group_at<'a>(
    sources: &'a Sources,
    diagnostic: &'a Diagnostic,
    span: Span,
    mut group: Group<'a>,
) -> Group<'a> {
    let file = sources.file(span.file);
    let mut primary = snippet(file).annotation(
        AnnotationKind::Primary
            .span(range(file, span))
            .label(diagnostic.label.as_deref()),
    );
    let mut others: Vec<(FileId, Snippet<'a, _>)> = Vec::new();
    for (place, text) in &diagnostic.related {
        let file = sources.file(place.file);
        let mark = AnnotationKind::Context
            .span(range(file, *place))
            .label(text.as_str());
        if place.file == span.file {
            primary = primary.annotation(mark);
        } else {
            others.push((place.file, snippet(file).annotation(mark)));
        }
    }
    group = group.element(primary);
    for (_, other) in others {
        group = group.element(other);
    }
    group
}

fn snippet<'a, T: Clone>(file: &'a SourceFile) -> Snippet<'a, T> {
    Snippet::source(Cow::Borrowed(text(file))).path(file.name.as_str())
}

/// The text without a leading byte-order mark, which would shift the first line by one column.
fn text(file: &SourceFile) -> &str {
    file.text.strip_prefix(BOM).unwrap_or(&file.text)
}

/// The bytes of a span in `text`, on character boundaries.
fn range(file: &SourceFile, span: Span) -> Range<usize> {
    let skipped = file.text.len() - text(file).len();
    let text = text(file);
    let clamp = |byte: u32| {
        let mut at = (byte as usize).saturating_sub(skipped).min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    clamp(span.start)..clamp(span.end).max(clamp(span.start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Code;

    fn place(file: FileId, start: u32, end: u32) -> Span {
        Span { file, start, end }
    }

    #[test]
    fn a_report_has_code_place_mark_and_help() {
        let mut sources = Sources::default();
        let file = sources.add("p.toml", "\u{feff}wieght = 1\n");
        let found = Diagnostic::new(Code::UnknownKey, place(file, 3, 9), "unknown key `wieght`")
            .label("here")
            .help("did you mean `weight`?");
        let text = human(&sources, &[found], false);
        let expected = "\
error[unknown-key]: unknown key `wieght`
 --> p.toml:1:1
  |
1 | wieght = 1
  | ^^^^^^ here
  |
  = help: did you mean `weight`?

";
        assert_eq!(text, expected);
    }

    #[test]
    fn colour_comes_only_when_asked_for() {
        let sources = Sources::default();
        let found = [Diagnostic::new(Code::NoRules, None, "no rules")];
        assert!(!human(&sources, &found, false).contains('\x1b'));
        assert!(human(&sources, &found, true).contains('\x1b'));
    }

    #[test]
    fn the_summary_counts_both_kinds() {
        let found = [
            Diagnostic::new(Code::NoRules, None, "a"),
            Diagnostic::new(Code::Syntax, None, "b"),
            Diagnostic::new(Code::Syntax, None, "c"),
        ];
        assert_eq!(summary_line(&found).as_deref(), Some("2 errors, 1 warning"));
        assert_eq!(summary_line(&[]), None);
    }
}
