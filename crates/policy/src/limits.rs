//! Every limit of the policy language, named once. Each one is quoted in the error that it causes
//! and, where the kernel program has the same limit, kept equal to `bpf/intf.h`.

/// Rules in the whole policy.
pub const MAX_RULES: usize = 256;
/// Alternatives once `any` and `not` are expanded, in the whole policy.
pub const MAX_ALTERNATIVES: usize = 512;
/// Different exact thread and process names.
pub const MAX_EXACT_NAMES: usize = 16384;
/// Patterns that are not exact names, as written, in the whole policy.
pub const MAX_PATTERNS: usize = 4096;
/// Bytes of a rule's name.
pub const MAX_RULE_NAME_BYTES: usize = 64;
/// Bytes of text in all files together.
pub const MAX_TEXT_BYTES: usize = 4 << 20;
/// Bytes that one compiled regex may take while it is checked. A pattern anywhere near it could
/// not become an automaton for the kernel anyway; the bound keeps checking fast.
pub const MAX_REGEX_BYTES: usize = 4 << 20;
/// Globs that one cgroup glob may stand for when braces with a `/` inside are written out.
pub const MAX_GLOB_EXPANSIONS: usize = 256;
/// Most CPUs that `cpus` may name; more than the kernel program serves.
pub const MAX_CPU_COUNT: i64 = 65_535;
/// Highest uid and gid; 2^32 - 1 means "unchanged" to the kernel and is no id.
pub const MAX_ID: i64 = (1 << 32) - 2;
/// Highest hint level.
pub const MAX_HINT: i64 = 1023;
