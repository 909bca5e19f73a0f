//! All stages in one call: files in, diagnostics and an image out.
//!
//! Every command and the daemon go through here, so that a dry run cannot disagree with them.
//! Invariant: there is a policy and an image exactly if no diagnostic is an error.

use std::collections::HashSet;

use twopool_diag::{Code, Diagnostic, FileId, Findings, Severity, Sources, Span};

use crate::dropins::rank;
use crate::eval::Class;
use crate::image::Image;
use crate::limits::MAX_TEXT_BYTES;
use crate::lint;
use crate::lower::lower;
use crate::options::{self, Options};
use crate::policy::Policy;
use crate::proof::{self, Reach};
use crate::resolve::{self, Names};
use crate::syntax;
use crate::testing::{self, TestReport};

pub use crate::dropins::Role;
pub use crate::resolve::Setting;

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// As shown to the user: the path as given, or `<stdin>`.
    pub name: String,
    /// What it is to the policy.
    pub role: Role,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// What came of some files.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// The texts that diagnostics point into, in effective order.
    pub sources: Sources,
    /// What was found, by file and place.
    pub diagnostics: Findings,
    /// What the files mean; `None` if there was an error.
    pub policy: Option<Policy>,
    /// What the kernel gets; `None` if there was an error.
    pub image: Option<Image>,
    /// What became of the `[[test]]` tables; empty if they could not be run.
    pub tests: TestReport,
    /// Every value in effect with its place; empty if there was an error.
    pub settings: Vec<Setting>,
    /// Which rules take some thread, as far as the budget of the proofs went; empty if there was
    /// an error, and before `prove`.
    pub reach: Reach,
}

impl Compiled {
    /// Errors and warnings.
    pub fn counts(&self) -> (usize, usize) {
        (self.diagnostics.errors(), self.diagnostics.warnings())
    }

    /// Whether the policy can be loaded.
    pub fn is_valid(&self) -> bool {
        self.image.is_some()
    }

    /// Decides which rules take some thread, and adds what follows to the diagnostics: warnings,
    /// never errors. Costs several times what all the rest does.
    pub fn prove(&mut self) {
        let (Some(policy), Some(image)) = (&self.policy, &self.image) else {
            return;
        };
        self.reach = proof::reach(policy, image);
        self.diagnostics
            .absorb(proof::findings(policy, &self.reach));
        self.diagnostics.sort_by_place();
    }
}

/// Compiles a policy, proofs included. The order of `inputs` does not matter.
pub fn compile(inputs: &[Input], names: &dyn Names) -> Compiled {
    let mut out = compile_unproven(inputs, names);
    out.prove();
    out
}

/// Compiles a policy as far as it takes to load it: all errors, and no warnings of the proofs. For
/// who must act at once and calls `prove` afterwards.
pub fn compile_unproven(inputs: &[Input], names: &dyn Names) -> Compiled {
    let mut inputs: Vec<&Input> = inputs.iter().collect();
    inputs.sort_by_key(|input| rank(input.role, &input.name));
    let mut out = Compiled {
        sources: Sources::default(),
        diagnostics: Findings::new(),
        policy: None,
        image: None,
        tests: TestReport::default(),
        settings: Vec::new(),
        reach: Reach::default(),
    };
    let bytes: usize = inputs.iter().map(|input| input.bytes.len()).sum();
    if bytes > MAX_TEXT_BYTES {
        let summary = format!("too much text: {bytes} bytes, at most {MAX_TEXT_BYTES} fit");
        out.diagnostics
            .push(Diagnostic::new(Code::LimitExceeded, None, summary));
        return out;
    }
    let mut files = Files::default();
    for input in inputs {
        files.read(input, &mut out);
    }
    files.judge(names, &mut out);
    out.diagnostics.sort_by_place();
    out
}

/// The files as they were written.
#[derive(Default)]
struct Files {
    /// In effective order.
    options: Vec<Options>,
    /// Which one is the policy file.
    policy: Option<FileId>,
    /// Lines with a syntax error.
    broken: HashSet<(FileId, u32)>,
}

impl Files {
    fn read(&mut self, input: &Input, out: &mut Compiled) {
        let file = FileId(u32::try_from(out.sources.files().len()).expect("fewer than 2^32 files"));
        let decoded = syntax::decode(file, &input.bytes);
        let id = out.sources.add(input.name.clone(), decoded.text.clone());
        debug_assert_eq!(id, file);
        let line_of = |byte| out.sources.line(file, byte);
        let (tree, syntax_errors) = syntax::parse(file, &decoded, line_of);
        let lines = tree.broken_lines.iter().map(|line| (file, *line));
        self.broken.extend(lines);
        let is_broken = !tree.broken_lines.is_empty();
        let is_guesswork = |d: &Diagnostic| is_broken && self.is_guesswork(d, &out.sources);
        let (mut options, mut found) = options::read(&tree, &is_guesswork);
        if options.empty && decoded.findings.is_empty() {
            found.push(empty(file, input.role));
        }
        out.diagnostics.absorb(decoded.findings);
        out.diagnostics.absorb(syntax_errors);
        out.diagnostics.absorb(found);
        match input.role {
            Role::Policy => self.policy = Some(file),
            Role::DropIn => {}
            Role::Tests => out.diagnostics.absorb(only_tests(&mut options)),
        }
        self.options.push(options);
    }

    /// What the parser makes of a line with a syntax error is guesswork, and so is a value that it
    /// invented, which has no place; nothing is said about either.
    fn is_guesswork(&self, found: &Diagnostic, sources: &Sources) -> bool {
        let is_placed = found.span.is_some_and(|span| span.end > 0);
        !is_placed || self.is_on_broken_line(found, sources)
    }

    fn is_on_broken_line(&self, found: &Diagnostic, sources: &Sources) -> bool {
        let line = |s: Span| (s.file, sources.line(s.file, s.start));
        found.span.is_some_and(|s| self.broken.contains(&line(s)))
    }

    /// Everything behind the files taken one by one.
    fn judge(&self, names: &dyn Names, out: &mut Compiled) {
        let files = &self.options;
        let (policy, mut found) = resolve::resolve(files, self.policy, &out.sources, names);
        let beyond_limits = found.iter().any(|d| d.code == Code::LimitExceeded);
        let mut doubts = lint::texts(files);
        doubts.retain(|doubt| !has_an_error_inside(doubt, &found));
        found.absorb(doubts);
        if !self.broken.is_empty() {
            found.retain(|d| !self.is_on_broken_line(d, &out.sources));
        }
        out.diagnostics.absorb(found);
        // Lowering a policy with errors elsewhere still finds the patterns that are too large, in
        // the same run. Beyond the limits it would only say the same again.
        let image = if beyond_limits {
            None
        } else {
            lower_into(&policy, out)
        };
        let Some(image) = image.filter(|_| out.counts().0 == 0) else {
            return;
        };
        out.diagnostics.absorb(lint::lint(files, &policy, &image));
        let (tests, failures) = testing::run(&policy, |thread| -> Class { image.classify(thread) });
        out.tests = tests;
        if failures.is_empty() {
            out.settings = resolve::show(files, &policy);
            out.policy = Some(policy);
            out.image = Some(image);
        }
        out.diagnostics.absorb(failures);
    }
}

/// Of a pattern that is wrong, it is enough to say what is wrong.
fn has_an_error_inside(doubt: &Diagnostic, found: &Findings) -> bool {
    let inside = |outer: Span, inner: Span| {
        outer.file == inner.file && (outer.start..outer.end).contains(&inner.start)
    };
    let mut errors = found.iter().filter(|d| d.severity() == Severity::Error);
    errors.any(|error| matches!((doubt.span, error.span), (Some(o), Some(i)) if inside(o, i)))
}

/// A file of tests must not decide what it tests: whatever else it holds is refused and dropped.
fn only_tests(options: &mut Options) -> Findings {
    let settings = std::mem::take(&mut options.settings);
    let rules = std::mem::take(&mut options.rules);
    let spans = rules.iter().map(|rule| rule.header);
    let spans = spans.chain(settings.values().map(|setting| setting.span));
    let mut found = Findings::new();
    for span in spans {
        let summary = "a file of tests holds `[[test]]` tables and nothing else";
        let help = "move it to the policy file, or to a drop-in in `policy.d`";
        found.push(
            Diagnostic::new(Code::UnknownKey, span, summary)
                .label("decides what is tested")
                .help(help),
        );
    }
    found
}

/// A file of blanks and comments: a policy that was lost, or a drop-in that somebody emptied.
fn empty(file: FileId, role: Role) -> Diagnostic {
    let help = match role {
        Role::Policy => {
            "an empty file is never taken for a policy; write at least `version = 1` and `default = ..`"
        }
        Role::DropIn => "delete it, or make it a link to /dev/null, which switches a drop-in off",
        Role::Tests => "delete it, or write `[[test]]` tables",
    };
    Diagnostic::new(
        Code::EmptyPolicy,
        syntax::span(file, 0, 0),
        "the file is empty",
    )
    .label("nothing but blanks and comments")
    .help(help)
}

fn lower_into(policy: &Policy, out: &mut Compiled) -> Option<Image> {
    let (image, found) = lower(policy);
    out.diagnostics.absorb(found);
    image
}
