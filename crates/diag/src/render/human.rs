//! Diagnostics as rustc shows them: code, place, the line with its mark, help.

use std::borrow::Cow;
use std::ops::Range;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};

use crate::printable::{printable, printable_lines, printable_styled};
use crate::{Diagnostic, FileId, Findings, Severity, SourceFile, Sources, Span};

const BOM: char = '\u{feff}';
/// Lines are never folded to a terminal's width: a report must not depend on where it is read.
const WIDTH: usize = 160;
/// Findings shown; nobody reads more, and a log must not drown in a file that is no policy.
const MOST_SHOWN: usize = 200;
/// A text up to this size is handed to the renderer whole, of a larger one the lines in question:
/// the renderer reads all that it is given for every finding.
const WINDOW: usize = 64 << 10;
/// Bytes handed to the renderer in all; enough for `MOST_SHOWN` findings but on endless lines.
const BUDGET: usize = MOST_SHOWN * WINDOW;

/// The diagnostics, one after the other, each followed by an empty line. Of very many the first,
/// and how many more there are.
pub fn human(sources: &Sources, findings: &Findings, color: bool) -> String {
    let renderer = if color {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    let renderer = renderer.term_width(WIDTH).decor_style(DecorStyle::Ascii);
    let mut out = String::new();
    let mut left = BUDGET;
    let mut shown = 0;
    for diagnostic in findings {
        let diagnostic = &without_controls(diagnostic);
        let pages = pages(sources, diagnostic);
        let cost = pages.iter().map(|page| page.bytes.len()).sum();
        if shown > 0 && (shown == MOST_SHOWN || left < cost) {
            break;
        }
        shown += 1;
        left = left.saturating_sub(cost);
        let text = renderer.render(&[group(sources, diagnostic, &pages)]);
        out.push_str(&printable_styled(&text));
        out.push_str("\n\n");
    }
    let more = findings.total() - shown;
    if more > 0 {
        let listed = match findings.omitted() {
            0 => "all".to_owned(),
            _ => format!("the first {}", findings.kept().len()),
        };
        out.push_str(&format!(
            "and {more} more; `twopool check --format json` lists {listed}\n\n"
        ));
    }
    out
}

/// A finding whose texts cannot act on a terminal. The renderer sees to the lines that it quotes.
fn without_controls(found: &Diagnostic) -> Diagnostic {
    let lines = |text: &String| printable_lines(text).into_owned();
    Diagnostic {
        code: found.code,
        summary: printable(&found.summary).into_owned(),
        span: found.span,
        label: found.label.as_ref().map(lines),
        related: found
            .related
            .iter()
            .map(|(span, text)| (*span, lines(text)))
            .collect(),
        help: found.help.as_ref().map(lines),
    }
}

/// `2 errors, 1 warning`, or `None` if there is neither.
pub fn summary_line(findings: &Findings) -> Option<String> {
    let count = |n: usize, what: &str| match n {
        0 => None,
        1 => Some(format!("1 {what}")),
        n => Some(format!("{n} {what}s")),
    };
    let parts: Vec<String> = [
        count(findings.errors(), "error"),
        count(findings.warnings(), "warning"),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Neighbouring lines of one file, and what is to be marked in them.
struct Page<'a> {
    file: FileId,
    /// Of the file; whole lines.
    bytes: Range<usize>,
    marks: Vec<(Span, AnnotationKind, Option<&'a str>)>,
}

/// The primary place first, then what is related to it: on the same page where that is near.
fn pages<'a>(sources: &Sources, diagnostic: &'a Diagnostic) -> Vec<Page<'a>> {
    let primary = diagnostic.span.iter().map(|span| {
        let label = diagnostic.label.as_deref();
        (*span, AnnotationKind::Primary, label)
    });
    let related = diagnostic
        .related
        .iter()
        .map(|(span, text)| (*span, AnnotationKind::Context, Some(text.as_str())));
    let mut pages: Vec<Page<'a>> = Vec::new();
    for (span, kind, label) in primary.chain(related) {
        let bytes = match sources.file(span.file).text.len() {
            small @ ..=WINDOW => 0..small,
            _ => sources.lines_of(span),
        };
        let near = pages.iter_mut().find_map(|page| {
            let both = page.bytes.start.min(bytes.start)..page.bytes.end.max(bytes.end);
            (page.file == span.file && both.len() <= WINDOW).then_some((page, both))
        });
        match near {
            Some((page, both)) => {
                page.bytes = both;
                page.marks.push((span, kind, label));
            }
            None => pages.push(Page {
                file: span.file,
                bytes,
                marks: vec![(span, kind, label)],
            }),
        }
    }
    pages
}

fn group<'a>(sources: &'a Sources, diagnostic: &'a Diagnostic, pages: &[Page<'a>]) -> Group<'a> {
    let level = match diagnostic.severity() {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level
        .primary_title(&diagnostic.summary)
        .id(diagnostic.code.as_str());
    let mut group = Group::with_title(title);
    if diagnostic.span.is_none()
        && let Some(label) = &diagnostic.label
    {
        group = group.element(Level::NOTE.message(label));
    }
    for page in pages {
        group = group.element(snippet(sources, page));
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help));
    }
    group
}

fn snippet<'a>(sources: &'a Sources, page: &Page<'a>) -> Snippet<'a, Annotation<'a>> {
    let file = sources.file(page.file);
    let text = text(file, &page.bytes);
    let line = sources.position(page.file, page.bytes.start as u32).line;
    let snippet = Snippet::source(Cow::Borrowed(text))
        .path(printable(&file.name))
        .line_start(line as usize);
    let skipped = page.bytes.end - text.len();
    snippet.annotations(
        page.marks
            .iter()
            .map(|(span, kind, label)| kind.span(range(text, skipped, *span)).label(*label)),
    )
}

/// A part of a file, without a leading byte-order mark, which would shift the first line by one
/// column.
fn text<'a>(file: &'a SourceFile, bytes: &Range<usize>) -> &'a str {
    let text = &file.text[bytes.clone()];
    match bytes.start {
        0 => text.strip_prefix(BOM).unwrap_or(text),
        _ => text,
    }
}

/// The bytes of a span in a text that begins behind `skipped` bytes, on character boundaries.
fn range(text: &str, skipped: usize, span: Span) -> Range<usize> {
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
        let text = human(&sources, &[found].into_iter().collect(), false);
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
        let found = found.into_iter().collect();
        assert!(!human(&sources, &found, false).contains('\x1b'));
        assert!(human(&sources, &found, true).contains('\x1b'));
    }

    #[test]
    fn of_a_large_text_only_the_lines_in_question_are_shown_under_their_numbers() {
        let mut sources = Sources::default();
        let text = format!("first = 1\n{}wieght = 1\n", "# \u{f6}\n".repeat(WINDOW));
        let at = text.find("wieght").expect("there") as u32;
        let file = sources.add("p.toml", text);
        let found = Diagnostic::new(Code::UnknownKey, place(file, at, at + 6), "unknown key")
            .label("here")
            .related(place(file, 0, 5), "there");
        let expected = "\
error[unknown-key]: unknown key
     --> p.toml:65538:1
      |
65538 | wieght = 1
      | ^^^^^^ here
      |
     ::: p.toml:1:1
      |
    1 | first = 1
      | ----- there

";
        assert_eq!(
            human(&sources, &[found].into_iter().collect(), false),
            expected
        );
    }

    #[test]
    fn of_very_many_the_first_are_shown_and_the_rest_counted() {
        let mut sources = Sources::default();
        let file = sources.add("p.toml", "x = 1\n".repeat(100_000));
        let found: Findings = (0..100_000)
            .map(|i| Diagnostic::new(Code::UnknownKey, place(file, i * 6, i * 6 + 1), "unknown"))
            .collect();
        let text = human(&sources, &found, false);
        assert_eq!(text.matches("error[unknown-key]").count(), MOST_SHOWN);
        assert!(
            text.ends_with(
                "\n\nand 99800 more; `twopool check --format json` lists the first 1000\n\n"
            ),
            "{}",
            &text[text.len() - 100..]
        );
        let first = |n: usize| -> Findings { found.iter().take(n).cloned().collect() };
        assert!(!human(&sources, &first(MOST_SHOWN), false).contains("more;"));
        let end = "and 1 more; `twopool check --format json` lists all\n\n";
        assert!(human(&sources, &first(MOST_SHOWN + 1), false).ends_with(end));
    }

    #[test]
    fn nothing_in_a_report_acts_on_a_terminal() {
        let mut sources = Sources::default();
        let evil = "\x1b]0;x\x07\u{9b}1m\u{202e}\u{2067}";
        let file = sources.add(format!("p{evil}\n.toml"), format!("k{evil} = 1\n"));
        let found = Diagnostic::new(Code::UnknownKey, place(file, 0, 1), format!("key {evil}\n"))
            .label(evil)
            .help(evil);
        let text = human(&sources, &[found].into_iter().collect(), false);
        assert_eq!(printable_lines(&text), text);
        assert!(
            text.starts_with("error[unknown-key]: key \\u{1b}]0;x"),
            "{text}"
        );
        assert_eq!(text.matches(".toml:1:1").count(), 1, "{text}");
    }

    #[test]
    fn the_summary_counts_both_kinds() {
        let found = [
            Diagnostic::new(Code::NoRules, None, "a"),
            Diagnostic::new(Code::Syntax, None, "b"),
            Diagnostic::new(Code::Syntax, None, "c"),
        ];
        let found = found.into_iter().collect();
        assert_eq!(summary_line(&found).as_deref(), Some("2 errors, 1 warning"));
        assert_eq!(summary_line(&Findings::new()), None);
    }
}
