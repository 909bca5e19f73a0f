//! One block of matchers as the conditions of a rule, if those can say exactly the same.

use serde_json::Value;

use super::cgroup::Cgroup;
use super::name::Name;
use crate::import::write::strings;
use crate::limits::MAX_ID;

/// A block as conditions; without any it takes every thread.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Key and value of each condition, as a policy writes them.
    pub conditions: Vec<(&'static str, String)>,
    /// The same for the table `not`, which has at most one.
    pub not: Vec<(&'static str, String)>,
    /// What the reader should know about it.
    pub remark: Option<String>,
}

impl Block {
    /// Whether it takes every thread.
    pub fn is_empty(&self) -> bool {
        self.conditions.is_empty() && self.not.is_empty()
    }

    /// As lines of a rule.
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.conditions.iter().map(assignment).collect();
        lines.extend(
            self.not
                .first()
                .map(|one| format!("not = {{ {} }}", assignment(one))),
        );
        lines
    }

    /// As a table of `any`, which cannot hold a `not`.
    pub fn inline(&self) -> String {
        let all: Vec<String> = self.conditions.iter().map(assignment).collect();
        format!("{{ {} }}", all.join(", "))
    }
}

fn assignment((key, value): &(&'static str, String)) -> String {
    format!("{key} = {value}")
}

/// What came of a block.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// These conditions say the same.
    Block(Block),
    /// It takes no thread: leaving it out changes nothing.
    Never(String),
    /// A policy cannot say it: every reason.
    Inexpressible(Vec<String>),
    /// It is not what scx_layered reads.
    Malformed(String),
}

/// Matchers that a policy has no condition for, and why.
const WITHOUT_COUNTERPART: &[(&str, &str)] = &[
    (
        "PIDEquals",
        "a policy names no process ids, which do not last",
    ),
    (
        "PPIDEquals",
        "a policy names no process ids, which do not last",
    ),
    (
        "TGIDEquals",
        "a policy names no process ids, which do not last",
    ),
    (
        "NSPIDEquals",
        "a policy names no process ids, which do not last",
    ),
    ("NSEquals", "a policy does not see namespaces"),
    (
        "CmdJoin",
        "threads cannot join a pool by renaming themselves",
    ),
    ("UsedGpuTid", "a policy does not see the use of GPUs"),
    ("UsedGpuPid", "a policy does not see the use of GPUs"),
    ("AvgRuntime", "a policy does not see how long a thread ran"),
    (
        "HintEquals",
        "hints of scx_layered are not those of twopool",
    ),
    ("SystemCpuUtilBelow", "a rule does not depend on load"),
    ("DsqInsertBelow", "a rule does not depend on load"),
    (
        "NumaNode",
        "a rule does not depend on the CPU that a thread may run on",
    ),
];

/// Reads one block.
pub fn read(matchers: &[(String, Value)]) -> Verdict {
    let mut all = All::default();
    let mut missing = Vec::new();
    for (name, argument) in matchers {
        let counterpart = WITHOUT_COUNTERPART.iter().find(|(known, _)| known == name);
        if let Some((name, why)) = counterpart {
            missing.push(format!("{name}: {why}"));
        } else if let Err(text) = all.add(name, argument) {
            return Verdict::Malformed(text);
        }
    }
    if missing.is_empty() {
        all.verdict()
    } else {
        Verdict::Inexpressible(missing)
    }
}

/// Everything that a block asks, by dimension.
#[derive(Debug)]
struct All {
    thread: Name,
    process: Name,
    cgroup: Cgroup,
    nice: (i64, i64),
    user: Equal<i64>,
    group: Equal<i64>,
    leader: Equal<bool>,
    kthread: Equal<bool>,
}

impl Default for All {
    fn default() -> Self {
        Self {
            thread: Name::default(),
            process: Name::default(),
            cgroup: Cgroup::default(),
            nice: (-20, 19),
            user: Equal::Any,
            group: Equal::Any,
            leader: Equal::Any,
            kthread: Equal::Any,
        }
    }
}

/// A value that must be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Equal<T> {
    Any,
    One(T),
    None,
}

impl<T: PartialEq + Copy> Equal<T> {
    fn and(&mut self, value: T) {
        *self = match *self {
            Equal::Any => Equal::One(value),
            Equal::One(other) if other == value => Equal::One(value),
            _ => Equal::None,
        };
    }
}

impl All {
    fn add(&mut self, name: &str, argument: &Value) -> Result<(), String> {
        match name {
            "CommPrefix" => self.thread.prefix(text(name, argument)?),
            "CommPrefixExclude" => self.thread.exclude(text(name, argument)?),
            "PcommPrefix" => self.process.prefix(text(name, argument)?),
            "PcommPrefixExclude" => self.process.exclude(text(name, argument)?),
            "CgroupPrefix" => self.cgroup.prefix(text(name, argument)?),
            "CgroupSuffix" => self.cgroup.suffix(text(name, argument)?),
            "CgroupContains" => self.cgroup.contains(text(name, argument)?),
            "CgroupRegex" => self.cgroup.regex(text(name, argument)?),
            "NiceAbove" => self.nice.0 = self.nice.0.max(number(name, argument)?.saturating_add(1)),
            "NiceBelow" => self.nice.1 = self.nice.1.min(number(name, argument)?.saturating_sub(1)),
            "NiceEquals" => {
                let nice = number(name, argument)?;
                self.nice = (self.nice.0.max(nice), self.nice.1.min(nice));
            }
            "UIDEquals" => self.user.and(number(name, argument)?),
            "GIDEquals" => self.group.and(number(name, argument)?),
            "IsGroupLeader" => self.leader.and(flag(name, argument)?),
            "IsKthread" => self.kthread.and(flag(name, argument)?),
            _ => return Err(format!("unknown matcher `{name}`")),
        }
        Ok(())
    }

    fn verdict(&self) -> Verdict {
        match self.block() {
            Ok(block) => Verdict::Block(block),
            Err(verdict) => verdict,
        }
    }

    fn block(&self) -> Result<Block, Verdict> {
        let mut block = Block::default();
        self.names(&mut block)?;
        block
            .conditions
            .extend(self.cgroup.condition()?.map(|value| ("cgroup", value)));
        id("user", self.user, &mut block)?;
        id("group", self.group, &mut block)?;
        block
            .conditions
            .extend(nice(self.nice)?.map(|value| ("nice", value)));
        for (key, value) in [("kthread", self.kthread), ("leader", self.leader)] {
            match value {
                Equal::Any => {}
                Equal::One(value) => block.conditions.push((key, value.to_string())),
                Equal::None => return Err(Verdict::Never(format!("{key} cannot be both"))),
            }
        }
        if self.kthread == Equal::One(false) {
            let text = "IsKthread false is taken as written; scx_layered up to 1.1.4 takes kernel threads there";
            block.remark = Some(text.to_owned());
        }
        Ok(block)
    }

    /// One of the names that must not begin in some way can be said by `not`; if both have such, the
    /// process's is a regex, because `not` is about all of its conditions together.
    fn names(&self, block: &mut Block) -> Result<(), Verdict> {
        let (thread, process) = (self.thread.settled()?, self.process.settled()?);
        let both = !thread.excluded.is_empty() && !process.excluded.is_empty();
        for (key, name) in [("thread", &thread), ("process", &process)] {
            if both && key == "process" {
                block.conditions.push((key, name.as_regex()));
                continue;
            }
            if let Some(prefix) = &name.prefix {
                let value = strings(std::slice::from_ref(prefix));
                block
                    .conditions
                    .push((key, format!("{{ prefix = {value} }}")));
            }
            if !name.excluded.is_empty() {
                block
                    .not
                    .push((key, format!("{{ prefix = {} }}", strings(&name.excluded))));
            }
        }
        Ok(())
    }
}

fn id(key: &'static str, value: Equal<i64>, block: &mut Block) -> Result<(), Verdict> {
    match value {
        Equal::Any => {}
        Equal::One(id) if (0..=MAX_ID).contains(&id) => {
            block.conditions.push((key, id.to_string()))
        }
        Equal::One(id) => return Err(Verdict::Never(format!("{id} is no id"))),
        Equal::None => return Err(Verdict::Never(format!("{key} cannot be two"))),
    }
    Ok(())
}

fn nice((min, max): (i64, i64)) -> Result<Option<String>, Verdict> {
    match (min.max(-20), max.min(19)) {
        (min, max) if min > max => Err(Verdict::Never("no nice value is like that".to_owned())),
        (-20, 19) => Ok(None),
        (min, max) if min == max => Ok(Some(min.to_string())),
        (-20, max) => Ok(Some(format!("{{ max = {max} }}"))),
        (min, 19) => Ok(Some(format!("{{ min = {min} }}"))),
        (min, max) => Ok(Some(format!("{{ min = {min}, max = {max} }}"))),
    }
}

fn text<'a>(name: &str, value: &'a Value) -> Result<&'a str, String> {
    match value.as_str() {
        Some(text) if text.contains('\0') => Err(format!("{name} has a NUL byte")),
        Some(text) => Ok(text),
        None => Err(format!("{name} needs a string")),
    }
}

fn number(name: &str, value: &Value) -> Result<i64, String> {
    value
        .as_i64()
        .ok_or_else(|| format!("{name} needs an integer"))
}

fn flag(name: &str, value: &Value) -> Result<bool, String> {
    value
        .as_bool()
        .ok_or_else(|| format!("{name} needs true or false"))
}
