//! What `twopool-load blocks` prints, read and summarised.

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// One block of requests under one scheduler.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// `alone`, `default`, `idle` or `twopool`.
    pub name: String,
    /// Requests served.
    pub requests: u64,
    /// Latency percentiles of the requests in milliseconds.
    pub p50_ms: f64,
    /// 99 %.
    pub p99_ms: f64,
    /// 99.9 %.
    pub p999_ms: f64,
    /// CPUs that the background used during the arrivals.
    pub background_cpus: f64,
    /// CPUs that the requests used meanwhile.
    pub request_cpus: f64,
}

impl Block {
    /// Reads one line; `None` for a JSON object that is not a block.
    pub fn parse(line: &Value) -> Result<Option<Self>> {
        let Some(name) = line["block"].as_str() else {
            return Ok(None);
        };
        let number = |value: &Value| value.as_f64().context("a block lacks a number");
        let latency = |key: &str| number(&line["latency"][key]).map(|us| us / 1000.0);
        Ok(Some(Self {
            name: name.to_owned(),
            requests: number(&line["requests"])? as u64,
            p50_ms: latency("p50_us")?,
            p99_ms: latency("p99_us")?,
            p999_ms: latency("p999_us")?,
            background_cpus: number(&line["background_cpus"])?,
            request_cpus: number(&line["request_cpus"])?,
        }))
    }
}

/// All blocks of one kind, in the order in which they ran.
#[derive(Debug, Clone)]
pub struct Kind<'a> {
    passes: Vec<&'a Block>,
}

impl Kind<'_> {
    /// The mean of a figure over the passes.
    pub fn mean(&self, figure: impl Fn(&Block) -> f64) -> f64 {
        self.passes.iter().map(|block| figure(block)).sum::<f64>() / self.passes.len() as f64
    }

    /// The figure of each pass, as `42.8 / 43.5`.
    pub fn each(&self, figure: impl Fn(&Block) -> f64, digits: usize) -> String {
        let texts: Vec<String> = self
            .passes
            .iter()
            .map(|block| format!("{:.digits$}", figure(block)))
            .collect();
        texts.join(" / ")
    }
}

/// The blocks of that kind.
pub fn kind<'a>(blocks: &'a [Block], name: &str) -> Result<Kind<'a>> {
    let passes: Vec<&Block> = blocks.iter().filter(|block| block.name == name).collect();
    if passes.is_empty() {
        bail!("no block `{name}` was measured");
    }
    Ok(Kind { passes })
}

/// The JSON objects of an output that has one a line.
pub fn json_lines(output: &str) -> Result<Vec<Value>> {
    output
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).with_context(|| format!("not JSON: {line}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"block":"idle","ops":"","requests":9,"window_s":1.0,"latency":
        {"mean_us":1.0,"p50_us":2000.0,"p90_us":3.0,"p99_us":4000.0,"p999_us":5000.0,"max_us":6.0},
        "background_cpus":3.25,"request_cpus":1.5}"#;

    #[test]
    fn a_block_is_read_and_summarised() {
        let value: Value = serde_json::from_str(LINE).unwrap();
        let mut blocks = vec![Block::parse(&value).unwrap().unwrap()];
        blocks.push(Block {
            p99_ms: 6.0,
            ..blocks[0].clone()
        });
        let idle = kind(&blocks, "idle").unwrap();
        assert_eq!(idle.mean(|b| b.p99_ms), 5.0);
        assert_eq!(idle.each(|b| b.p99_ms, 1), "4.0 / 6.0");
        assert!(kind(&blocks, "alone").is_err());
    }

    #[test]
    fn other_objects_are_not_blocks() {
        let lines = json_lines("noise\n{\"effect_ms\":1.0}\n").unwrap();
        assert_eq!(Block::parse(&lines[0]).unwrap(), None);
    }
}
