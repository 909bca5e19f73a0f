//! What client and daemon say to each other: one JSON object a line, each way.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use twopool_policy::compile::{Input, Role};
use twopool_telemetry::ReloadResult;

/// Both sides refuse another version, so that neither misreads the other after an upgrade.
pub const VERSION: u32 = 1;

/// Longest request, in bytes.
pub const MAX_REQUEST_BYTES: u64 = 4096;

/// A client's line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// `VERSION`.
    pub version: u32,
    /// What is wanted.
    pub request: Kind,
    /// For `reload`: answer when the outcome is known. Else: when the request was taken.
    #[serde(default)]
    pub wait: bool,
}

impl Request {
    /// A request that does not wait.
    pub fn new(request: Kind) -> Self {
        Self {
            version: VERSION,
            request,
            wait: false,
        }
    }
}

/// What can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The status document.
    Status,
    /// Every thread with its pool and rule.
    Threads,
    /// The texts of the policy in force.
    Policy,
    /// Read the policy now.
    Reload,
}

impl Kind {
    /// Whether only root may ask: it changes what the daemon does, or tells what is in files that not
    /// everybody may read.
    pub fn is_for_root(self) -> bool {
        match self {
            Kind::Status | Kind::Threads => false,
            Kind::Policy | Kind::Reload => true,
        }
    }
}

/// The daemon's line: `ok` or `error`, never both.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// `VERSION`.
    pub version: u32,
    /// The result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok: Option<Value>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Refusal>,
}

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Stable, lower case with dashes.
    pub code: String,
    /// Lowercase, no final period.
    pub message: String,
}

impl Response {
    /// A result.
    pub fn ok(result: impl Serialize) -> Self {
        let ok = serde_json::to_value(result).expect("our documents have string keys");
        Self {
            version: VERSION,
            ok: Some(ok),
            error: None,
        }
    }

    /// A refusal.
    pub fn refuse(code: &str, message: impl Into<String>) -> Self {
        Refusal::new(code, message).into()
    }
}

impl From<Refusal> for Response {
    fn from(refusal: Refusal) -> Self {
        Self {
            version: VERSION,
            ok: None,
            error: Some(refusal),
        }
    }
}

impl Refusal {
    /// A refusal.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
        }
    }
}

/// The result of `reload`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// `None`: taken, the outcome is not known yet.
    pub result: Option<ReloadResult>,
    /// Of the policy in force after it.
    pub epoch: u32,
    /// Of the set of files in force after it.
    pub hash: String,
    /// The document of `check` for what was read; `None` if nothing could be read.
    pub check: Option<Value>,
    /// Its findings for people, or why nothing could be read; may be empty.
    pub text: String,
}

/// The result of `policy`: what the policy in force was compiled from. The files may have changed since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyTexts {
    /// Of the policy in force.
    pub epoch: u32,
    /// Of the set of files.
    pub hash: String,
    /// In the order in which they were read.
    pub files: Vec<PolicyText>,
}

/// A file of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyText {
    /// Its path.
    pub name: String,
    /// `policy`, `tests` or `drop-in`.
    pub role: Role,
    /// Its content.
    pub text: String,
}

impl From<&Input> for PolicyText {
    fn from(input: &Input) -> Self {
        Self {
            name: input.name.clone(),
            role: input.role,
            // A valid policy is UTF-8.
            text: String::from_utf8_lossy(&input.bytes).into_owned(),
        }
    }
}

impl From<PolicyText> for Input {
    fn from(file: PolicyText) -> Self {
        Self {
            name: file.name,
            role: file.role,
            bytes: file.text.into_bytes(),
        }
    }
}

/// One thread in the result of `threads`. Threads that the kernel schedules itself (real-time,
/// deadline) are not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadRow {
    /// Thread id.
    pub tid: i32,
    /// Process id.
    pub pid: i32,
    /// Its name; bytes that are not UTF-8 as `\xNN`.
    pub thread: String,
    /// The pool that the scheduler acts on.
    pub pool: String,
    /// The rule that gave it, from 1, in the policy that `epoch` names; null: the default pool.
    pub rule: Option<u32>,
    /// Its name; null as well where that policy is long gone.
    pub rule_name: Option<String>,
    /// Of the policy that gave it; 0: not classified yet, `pool` is where it will wake.
    pub epoch: u32,
    /// Pool by the policy in force; differs from `pool` until the thread's next wake or tick.
    pub next_pool: String,
}
