//! Rule sets of other tools as policies: ananicy's lists and scx_layered's layers.
//!
//! Invariants: what an import writes is a policy that compiles, unless it says that a limit is
//! exceeded; every rule says where it came from; nothing is lost in silence. What cannot be said in
//! a policy is left out and named, never said more widely.

pub mod ananicy;
pub mod layered;
mod report;
mod write;

pub use report::report;

/// One file of a foreign rule set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// As shown to the user.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// What came of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The text of a policy.
    pub policy: String,
    /// What the user must know, by kind, then in the order of the sources.
    pub notes: Vec<Note>,
    /// Foreign rules that were read, malformed ones included.
    pub read: usize,
    /// Those of them that the policy holds.
    pub kept: usize,
    /// Rules of the policy.
    pub rules: usize,
}

impl Imported {
    /// Whether something in the sources was malformed.
    pub fn is_malformed(&self) -> bool {
        self.notes
            .iter()
            .any(|note| note.kind == NoteKind::Malformed)
    }
}

/// One thing to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// What sort of thing.
    pub kind: NoteKind,
    /// The source, and its line from 1; `None`: the import as a whole.
    pub place: Option<(String, usize)>,
    /// Lowercase, no final period.
    pub text: String,
}

macro_rules! note_kinds {
    ($($variant:ident $name:literal $heading:literal;)*) => {
        /// What sort of thing a note is about.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum NoteKind { $(#[doc = $heading] $variant,)* }

        impl NoteKind {
            /// All, in the order of the report.
            pub const ALL: &[NoteKind] = &[$(NoteKind::$variant,)*];

            /// For programs.
            pub fn as_str(self) -> &'static str {
                match self { $(NoteKind::$variant => $name,)* }
            }

            /// For people.
            pub fn heading(self) -> &'static str {
                match self { $(NoteKind::$variant => $heading,)* }
            }
        }
    };
}

note_kinds! {
    Malformed "malformed" "malformed, left out";
    LeftOut "left-out" "left out, because a policy cannot say it";
    Changed "changed" "means something else in a policy";
    Cut "name-too-long" "names of more than 15 bytes, cut as the kernel does";
    Clash "clash" "different names that the kernel's cut makes one; the later line counts";
    Duplicate "duplicate" "names that are there twice; the later line counts";
    Dropped "dropped" "dropped, because a policy has nothing like it";
}

/// What is wrong with a text that is not JSON; the place is for the caller to tell.
fn json_fault(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let what = message.split(" at line ").next().unwrap_or_default();
    format!("not JSON: {what}")
}

/// Notes as they are found.
#[derive(Debug, Default)]
struct Notes(Vec<Note>);

impl Notes {
    fn at(&mut self, kind: NoteKind, file: &str, line: usize, text: impl Into<String>) {
        self.0.push(Note {
            kind,
            place: Some((file.to_owned(), line)),
            text: text.into(),
        });
    }

    /// By kind; those of one kind stay in their order.
    fn sorted(mut self) -> Vec<Note> {
        self.0.sort_by_key(|note| note.kind);
        self.0
    }
}
