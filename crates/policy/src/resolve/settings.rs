//! Everything outside `[[rule]]` and `[[test]]`: merged key by key, defaulted from the table of
//! keys, and shown.

use twopool_diag::{Code, Diagnostic, Findings, Span};

use crate::keys;
use crate::options::{Options, Setting as Written, Value, default_value};
use crate::policy::{Cpus, Hints, Placement, Policy, Pool, PoolSettings, Steal};
use crate::text::toml_string;

/// One value of the effective policy, for `show`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Dotted: `pool.critical.weight`, `rule[1].thread`.
    pub path: String,
    /// As TOML text.
    pub value: String,
    /// Where it was written; `None` for a default.
    pub origin: Option<Span>,
}

/// The first value of each key over all files.
pub struct Merged<'a> {
    files: &'a [Options],
}

impl<'a> Merged<'a> {
    pub fn of(files: &'a [Options]) -> Self {
        Self { files }
    }

    fn written(&self, path: &str) -> Option<&'a Written> {
        self.files.iter().find_map(|f| f.settings.get(path))
    }

    /// The effective value; `None` for a key without a default that nobody wrote.
    pub fn get(&self, path: &str) -> Option<Value> {
        if let Some(written) = self.written(path) {
            return Some(written.value.clone());
        }
        let pool = path.split('.').nth(1);
        let key = keys::find(path).unwrap_or_else(|| panic!("`{path}` is a key"));
        let background = pool == Some(Pool::Background.as_str());
        let default = if background {
            key.background.or(key.default)
        } else {
            key.default
        };
        default.map(|text| default_value(key, text))
    }

    pub fn default_pool(&self) -> Pool {
        match self.get("default") {
            Some(Value::Pool(pool)) => pool,
            _ => Pool::Background,
        }
    }

    pub fn micros(&self, path: &str) -> Option<u64> {
        match self.get(path)? {
            Value::Micros(us) => Some(us),
            _ => None,
        }
    }

    fn percent(&self, path: &str) -> Option<u32> {
        match self.get(path)? {
            Value::Percent(percent) => Some(percent),
            _ => None,
        }
    }

    fn cpus(&self, path: &str) -> Cpus {
        match self.get(path) {
            Some(Value::Cpus(cpus)) => cpus,
            other => panic!("`{path}` has a default, not {other:?}"),
        }
    }

    pub fn pool(&self, pool: Pool) -> PoolSettings {
        let path = |key: &str| format!("pool.{}.{key}", pool.as_str());
        PoolSettings {
            weight: match self.get(&path("weight")) {
                Some(Value::Integer(weight)) => u32::try_from(weight).unwrap_or(1),
                _ => 1,
            },
            slice_us: self.micros(&path("slice")).unwrap_or_default(),
            cpus_min: self.cpus(&path("cpus.min")),
            cpus_max: self.cpus(&path("cpus.max")),
            utilization_low_percent: self.percent(&path("utilization.low")).unwrap_or_default(),
            utilization_high_percent: self.percent(&path("utilization.high")).unwrap_or_default(),
            preempt: matches!(self.get(&path("preempt")), Some(Value::Bool(true))),
            perf_percent: self.percent(&path("perf")),
            placement: match self.get(&path("placement")) {
                Some(Value::Word("pack")) => Placement::Pack,
                _ => Placement::Spread,
            },
        }
    }

    pub fn steal(&self) -> Steal {
        Steal {
            smt_us: self.micros("steal.smt"),
            llc_us: self.micros("steal.llc"),
            node_us: self.micros("steal.node"),
            machine_us: self.micros("steal.machine"),
        }
    }

    pub fn hints(&self) -> Hints {
        Hints {
            boost_us: self.micros("hints.boost").unwrap_or_default(),
            max_share_percent: self.percent("hints.max_share").unwrap_or_default(),
        }
    }

    /// What two settings say together.
    pub fn check(&self, diagnostics: &mut Findings) {
        for pool in Pool::ALL {
            let path = |key: &str| format!("pool.{}.utilization.{key}", pool.as_str());
            let (low, high) = (self.percent(&path("low")), self.percent(&path("high")));
            let (Some(low), Some(high)) = (low, high) else {
                continue;
            };
            if low <= high {
                continue;
            }
            let written = self
                .written(&path("low"))
                .or_else(|| self.written(&path("high")));
            let summary = format!("`pool.{}.utilization` has low above high", pool.as_str());
            diagnostics.push(
                Diagnostic::new(Code::InvalidValue, written.map(|w| w.span), summary)
                    .label(format!("low is {low} %, high is {high} %"))
                    .help("the pool grows above high and shrinks below low"),
            );
        }
    }
}

/// The whole effective policy, value by value, each with its place.
pub fn show(files: &[Options], policy: &Policy) -> Vec<Setting> {
    let merged = Merged::of(files);
    let mut out = Vec::new();
    for (path, ..) in keys::settings() {
        if let Some(value) = merged.get(&path) {
            let origin = merged.written(&path).map(|w| w.span);
            out.push(Setting {
                value: toml_text(&value),
                path,
                origin,
            });
        }
    }
    let rules = files.iter().flat_map(|f| &f.rules);
    for (i, (written, rule)) in rules.zip(&policy.rules).enumerate() {
        super::show::show(i + 1, written, rule, policy, &mut out);
    }
    out
}

fn toml_text(value: &Value) -> String {
    match value {
        Value::Integer(number) => number.to_string(),
        Value::Micros(us) => format!("\"{}\"", crate::options::show_us(*us)),
        Value::Off => "\"off\"".to_owned(),
        Value::Percent(percent) => format!("\"{percent}%\""),
        Value::Cpus(Cpus::Count(count)) => count.to_string(),
        Value::Cpus(Cpus::Percent(percent)) => format!("\"{percent}%\""),
        Value::Bool(on) => on.to_string(),
        Value::Word(word) => format!("\"{word}\""),
        Value::Pool(pool) => format!("\"{}\"", pool.as_str()),
        Value::Text(text) => toml_string(&text.value),
        Value::Cgroups(patterns) => super::show::patterns_text(patterns),
    }
}
