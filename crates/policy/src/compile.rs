//! All stages in one call: files in, diagnostics and an image out.
//!
//! Every command and the daemon go through here, so that a dry run cannot disagree with them.
//! Invariant: there is a policy and an image exactly if no diagnostic is an error.

use twopool_diag::{Code, Diagnostic, FileId, Findings, Sources, Span};

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
    let mut files = Vec::new();
    let mut policy_file = None;
    for input in inputs {
        let file = read(input, &mut out);
        if input.role == Role::Policy {
            policy_file = Some(file.file);
        }
        files.push(file);
    }
    judge(&files, policy_file, names, &mut out);
    out.diagnostics.sort_by_place();
    out
}

fn read(input: &Input, out: &mut Compiled) -> Options {
    let file = FileId(u32::try_from(out.sources.files().len()).expect("fewer than 2^32 files"));
    let decoded = syntax::decode(file, &input.bytes);
    let id = out.sources.add(input.name.clone(), decoded.text);
    debug_assert_eq!(id, file);
    let line_of = |byte| out.sources.line(file, byte);
    let (tree, syntax_errors) = syntax::parse(file, &decoded.clean, line_of);
    // What the parser makes of a line with a syntax error is guesswork, and so is a value that it
    // invented, which has no place; say nothing about either.
    let broken = &tree.broken_lines;
    let is_guesswork = |d: &Diagnostic| {
        let has_place = |s: Span| s.end > 0 && !broken.contains(&line_of(s.start));
        !broken.is_empty() && !d.span.is_some_and(has_place)
    };
    let (options, mut found) = options::read(&tree, &is_guesswork);
    if options.empty && decoded.findings.is_empty() {
        found.push(
            Diagnostic::new(Code::EmptyPolicy, syntax::span(file, 0, 0), "the file is empty")
                .label("nothing but blanks and comments")
                .help("an empty file is never taken for a policy; write at least `version = 1` and `default = ..`"),
        );
    }
    out.diagnostics.absorb(decoded.findings);
    out.diagnostics.absorb(syntax_errors);
    out.diagnostics.absorb(found);
    options
}

/// Everything behind the files taken one by one.
fn judge(files: &[Options], policy_file: Option<FileId>, names: &dyn Names, out: &mut Compiled) {
    let (policy, found) = resolve::resolve(files, policy_file, &out.sources, names);
    let beyond_limits = found.iter().any(|d| d.code == Code::LimitExceeded);
    out.diagnostics.absorb(found);
    // Lowering a policy with errors elsewhere still finds the patterns that are too large, in the
    // same run. Beyond the limits it would only say the same again.
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

fn lower_into(policy: &Policy, out: &mut Compiled) -> Option<Image> {
    let (image, found) = lower(policy);
    out.diagnostics.absorb(found);
    image
}
