//! The one table of diagnostic codes. `docs/diagnostics/CODE.md` explains each, and is part of the
//! program: a code without a page does not compile.

/// Errors cannot be loaded; warnings load but look wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The policy cannot be loaded.
    Error,
    /// The policy loads, but something in it looks wrong.
    Warning,
}

impl Severity {
    /// `error` or `warning`, as in JSON and in text.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

macro_rules! codes {
    ($($variant:ident $name:literal $severity:ident $doc:literal;)*) => {
        /// What kind of finding a diagnostic is. Part of the public interface.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code { $(#[doc = $doc] $variant,)* }

        impl Code {
            /// Every code, in the order of the table.
            pub const ALL: &[Code] = &[$(Code::$variant,)*];

            /// The public name, as in JSON: `unknown-key`.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $name,)* }
            }

            /// One line that says what the code means.
            pub fn summary(self) -> &'static str {
                match self { $(Code::$variant => $doc,)* }
            }

            /// Whether a policy with this finding can be loaded.
            pub fn severity(self) -> Severity {
                match self { $(Code::$variant => Severity::$severity,)* }
            }

            /// What the code means, with a wrong and a right example; Markdown.
            pub fn page(self) -> &'static str {
                match self {
                    $(Code::$variant => include_str!(concat!("../../../docs/diagnostics/", $name, ".md")),)*
                }
            }

            /// The code of a public name.
            pub fn from_name(name: &str) -> Option<Code> {
                match name { $($name => Some(Code::$variant),)* _ => None }
            }
        }
    };
}

codes! {
    Syntax "syntax" Error "The text is not TOML.";
    UnknownKey "unknown-key" Error "A key that the language does not have, or not in this table.";
    MissingKey "missing-key" Error "A required key is absent.";
    DuplicateKey "duplicate-key" Error "The same key or table twice in one file.";
    DuplicateName "duplicate-name" Error "Two rules with one name.";
    InvalidType "invalid-type" Error "A value of the wrong TOML type.";
    InvalidValue "invalid-value" Error "A value of the right type that means nothing here.";
    OutOfRange "out-of-range" Error "A number, duration or percentage outside its range.";
    UnknownPool "unknown-pool" Error "A pool other than `critical` and `background`.";
    InvalidGlob "invalid-glob" Error "A glob that is not well formed.";
    InvalidRegex "invalid-regex" Error "A regex that is not well formed, or uses what is not supported.";
    PatternTooLarge "pattern-too-large" Error "Patterns whose automaton would exceed its limit.";
    NeverMatches "never-matches" Error "A pattern that no name of at most 15 bytes can match.";
    LimitExceeded "limit-exceeded" Error "More of something than the kernel program has room for.";
    EmptyPolicy "empty-policy" Error "A file without any content.";
    FailedTest "failed-test" Error "A `[[test]]` table whose expectation does not hold.";
    NameTooLong "name-too-long" Warning "An exact name of more than 15 bytes; the kernel keeps 15.";
    UnreachableRule "unreachable-rule" Warning "A rule whose threads are all taken by earlier ones.";
    UnreachableAlternative "unreachable-alternative" Warning "A table of `any` whose threads are all taken by earlier rules.";
    UnreachablePattern "unreachable-pattern" Warning "A pattern in a list whose threads are all taken by earlier rules.";
    DuplicateRule "duplicate-rule" Warning "A rule with the same conditions as an earlier one.";
    TruncationClash "truncation-clash" Warning "Two names that are equal once cut to 15 bytes.";
    CommOnlyElevation "comm-only-elevation" Warning "A rule into `critical` that a rename is enough to claim.";
    EssentialInBackground "essential-in-background" Warning "A rule that singles out init or twopool itself for `background`.";
    LooksLikeRegex "looks-like-regex" Warning "A glob or prefix that reads like a regex.";
    LooksLikeGlob "looks-like-glob" Warning "A regex, prefix or path that reads like a glob.";
    CgroupMountPoint "cgroup-mount-point" Warning "A cgroup path that begins with the mount point.";
    SuspiciousEscape "suspicious-escape" Warning "An escape in double quotes that TOML turned into another character.";
    ControlCharacter "control-character" Warning "A control character, such as a tab, in a name or a path.";
    LooksLikeLiteral "looks-like-literal" Warning "A bracket class that reads like part of a name.";
    SuspiciousBlank "suspicious-blank" Warning "A name pattern that begins or ends with a blank.";
    WorkqueueSuffix "workqueue-suffix" Warning "A kernel worker's name with the work queue that /proc adds.";
    NoRules "no-rules" Warning "A policy without rules: every thread takes the default pool.";
    SliceBelowTick "slice-below-tick" Warning "A slice shorter than this host's scheduler tick.";
    UnknownUser "unknown-user" Warning "A user or group name that this host does not know.";
    NoCgroup2 "no-cgroup2" Warning "Cgroup rules on a host without a cgroup v2 hierarchy.";
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Title and first sentence of a page come from the table, or the two would drift apart.
    #[test]
    fn every_page_begins_with_its_code_and_what_the_table_says() {
        for code in Code::ALL {
            let severity = match code.severity() {
                Severity::Error => "Error",
                Severity::Warning => "Warning",
            };
            let head = format!("# {}\n\n{severity}. {}\n\n", code.as_str(), code.summary());
            let page = code.page();
            assert!(
                page.starts_with(&head),
                "expected {head:?}, got {:?}",
                page.get(..120)
            );
            assert_eq!(Code::from_name(code.as_str()), Some(*code));
        }
        assert_eq!(Code::from_name("no-such-code"), None);
    }
}
