//! scx_layered's layers as a policy: each layer becomes the rules that take exactly its threads.
//!
//! A layer matches if one of its blocks does, a block if all of its matchers do, and the first layer
//! that matches takes the thread: rules of a policy work alike. A block with a matcher that a policy
//! cannot say is left out as a whole, so that a rule never takes a thread that its layer would not.
//! The threads that are missed go on to the layers behind, as they do wherever a block is deleted.
//!
//! There are two pools for up to sixteen layers: a layer with `preempt` is critical, every other one
//! background. How a layer gets its CPUs has no counterpart.

mod block;
mod cgroup;
mod json;
mod name;

use serde_json::Value;

use crate::options::show_us;
use crate::policy::{NEUTRAL_WEIGHT, Pool};

use super::write::{Names, Policy, Rule};
use super::{Imported, NoteKind, Notes, Source};
use block::{Block, Verdict};
use json::Layer;

const WEIGHTS: std::ops::RangeInclusive<u64> = 1..=10_000;
/// What a rule's slice may be.
const SLICES_US: std::ops::RangeInclusive<u64> = 100..=1_000_000;
/// Keys of a layer that have a counterpart.
const COUNTERPARTS: &[&str] = &["preempt", "weight", "slice_us"];

/// Imports one configuration.
pub fn import(source: &Source) -> Imported {
    let mut import = Import {
        file: &source.name,
        notes: Notes::default(),
        names: Names::default(),
        rules: Vec::new(),
        kept: 0,
        default: Pool::Background,
    };
    let (values, fault) = json::elements(&source.bytes);
    let read = values.len() + usize::from(fault.is_some());
    for (index, (line, value)) in values.iter().enumerate() {
        match json::layer(value) {
            Ok(layer) => import.layer(index + 1, *line, &layer),
            Err(text) => import.malformed(index + 1, *line, &text),
        }
    }
    if let Some((line, text)) = fault {
        import
            .notes
            .at(NoteKind::Malformed, &source.name, line, text);
    }
    import.finish(read)
}

/// What stands in the policy: a rule, or the reason why there is none.
enum Entry {
    Rule(Rule),
    Remark(Vec<String>),
}

struct Import<'a> {
    file: &'a str,
    notes: Notes,
    names: Names,
    rules: Vec<Entry>,
    /// Layers that have a rule.
    kept: usize,
    /// The pool of the last layer that takes every thread.
    default: Pool,
}

impl Import<'_> {
    fn malformed(&mut self, number: usize, line: usize, text: &str) {
        self.notes.at(
            NoteKind::Malformed,
            self.file,
            line,
            format!("layer {number}: {text}"),
        );
        let file = self.file;
        self.rules.push(Entry::Remark(vec![format!(
            "{file}:{line}: layer {number} is malformed and left out: {text}."
        )]));
    }

    fn layer(&mut self, number: usize, line: usize, layer: &Layer) {
        let file = self.file;
        let mut comments = vec![format!("{file}:{line}: layer {number}, {}.", layer.kind)];
        if let Some(text) = &layer.comment {
            comments.push(format!("Its comment: {text}"));
        }
        let mut blocks = Vec::new();
        for (index, matchers) in layer.matches.iter().enumerate() {
            blocks.extend(self.block(layer, line, index + 1, matchers, &mut comments));
        }
        if layer.template {
            let text = "its template makes layers of the cgroups that the host has when the scheduler starts";
            self.left_out(layer, line, text, &mut comments);
            blocks.clear();
        }
        if blocks.is_empty() {
            if layer.matches.is_empty() {
                self.left_out(
                    layer,
                    line,
                    "it has no block and takes no thread",
                    &mut comments,
                );
            }
            comments.push("No rule.".to_owned());
            self.rules.push(Entry::Remark(comments));
            return;
        }
        self.kept += 1;
        self.properties(layer, line, &mut comments);
        self.rules_of(layer, &blocks, comments);
    }

    /// A block that a rule can say; `None`: it is left out, which is noted.
    fn block(
        &mut self,
        layer: &Layer,
        line: usize,
        number: usize,
        matchers: &[(String, Value)],
        comments: &mut Vec<String>,
    ) -> Option<Block> {
        match block::read(matchers) {
            Verdict::Block(block) => {
                if let Some(text) = &block.remark {
                    self.note(NoteKind::Changed, layer, line, text);
                    comments.push(format!("Block {number}: {text}."));
                }
                return Some(block);
            }
            Verdict::Malformed(text) => {
                let text = format!("block {number}: {text}");
                self.note(NoteKind::Malformed, layer, line, &text);
                comments.push(format!("Malformed, left out: {text}."));
            }
            Verdict::Never(text) => {
                self.left_out(
                    layer,
                    line,
                    &format!("block {number} takes no thread: {text}"),
                    comments,
                );
            }
            Verdict::Inexpressible(all) => {
                for text in all {
                    self.left_out(layer, line, &format!("block {number}: {text}"), comments);
                }
            }
        }
        None
    }

    fn note(&mut self, kind: NoteKind, layer: &Layer, line: usize, text: &str) {
        let text = format!("`{}`: {text}", layer.name);
        self.notes.at(kind, self.file, line, text);
    }

    fn left_out(&mut self, layer: &Layer, line: usize, text: &str, comments: &mut Vec<String>) {
        self.note(NoteKind::LeftOut, layer, line, text);
        comments.push(format!("Left out: {text}."));
    }

    /// What becomes of the layer's properties.
    fn properties(&mut self, layer: &Layer, line: usize, comments: &mut Vec<String>) {
        let mut changed = Vec::new();
        if layer.weight != u64::from(NEUTRAL_WEIGHT) {
            changed.push(format!(
                "weight {} was the layer's share, and is that of each of its threads inside the pool",
                layer.weight
            ));
        }
        if let Some(us) = layer.slice_us.filter(|us| !SLICES_US.contains(us)) {
            let slice = allowed_slice(us);
            changed.push(format!(
                "slice_us {us} is outside of what a policy allows, and is {slice}"
            ));
        }
        if layer.kind == "Confined" {
            changed.push("Confined kept its threads on CPUs of their own; a pool's threads may use idle ones of the other".to_owned());
        }
        for text in changed {
            self.note(NoteKind::Changed, layer, line, &text);
            comments.push(format!("{text}."));
        }
        let dropped: Vec<&str> = layer
            .properties
            .iter()
            .map(String::as_str)
            .filter(|key| !COUNTERPARTS.contains(key))
            .collect();
        if !dropped.is_empty() {
            let text = format!("no counterpart of {}", dropped.join(", "));
            self.note(NoteKind::Dropped, layer, line, &text);
            comments.push(format!("Dropped: {text}."));
        }
    }

    /// Blocks without `not` are one rule with `any`; the others are a rule each. Which of a layer's
    /// rules takes a thread does not matter.
    fn rules_of(&mut self, layer: &Layer, blocks: &[Block], comments: Vec<String>) {
        let pool = if layer.preempt {
            Pool::Critical
        } else {
            Pool::Background
        };
        let everything = blocks.iter().any(|block| block.is_empty());
        let mut all: Vec<Vec<String>> = Vec::new();
        if everything {
            self.default = pool;
            all.push(Vec::new());
        } else {
            let (with_not, plain): (Vec<_>, Vec<_>) =
                blocks.iter().partition(|b| !b.not.is_empty());
            match plain.as_slice() {
                [] => {}
                [only] => all.push(only.lines()),
                several => {
                    let tables = several.iter().map(|b| format!("    {},", b.inline()));
                    let mut lines = vec!["any = [".to_owned()];
                    lines.extend(tables);
                    lines.push("]".to_owned());
                    all.push(lines);
                }
            }
            all.extend(with_not.iter().map(|block| block.lines()));
        }
        for (index, conditions) in all.into_iter().enumerate() {
            let comments = match index {
                0 => comments.clone(),
                _ => vec![format!("More of `{}`.", layer.name)],
            };
            let weight = layer.weight.clamp(*WEIGHTS.start(), *WEIGHTS.end());
            self.rules.push(Entry::Rule(Rule {
                comments,
                name: self.names.unique(&layer.name),
                pool,
                conditions,
                slice: layer.slice_us.map(allowed_slice),
                weight: (weight != u64::from(NEUTRAL_WEIGHT)).then_some(weight as u32),
            }));
        }
    }

    fn finish(self, read: usize) -> Imported {
        let header = [
            format!(
                "From the scx_layered configuration {}, by `twopool import scx_layered`.",
                self.file
            ),
            String::new(),
            "Layers with `preempt` became critical, all others background.".to_owned(),
        ];
        let mut policy = Policy::new(&header, self.default);
        for entry in &self.rules {
            match entry {
                Entry::Rule(rule) => policy.rule(rule),
                Entry::Remark(comments) => policy.remark(comments),
            }
        }
        let (policy, rules) = policy.finish();
        Imported {
            policy,
            notes: self.notes.sorted(),
            read,
            kept: self.kept,
            rules,
        }
    }
}

/// A slice as a policy writes it, the nearest that it allows.
fn allowed_slice(us: u64) -> String {
    show_us(us.clamp(*SLICES_US.start(), *SLICES_US.end()))
}

#[cfg(test)]
mod tests;
