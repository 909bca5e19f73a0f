//! Threads as tab-separated values: what `snapshot` writes and `explain`, `plan` and tests read.
//!
//! The first line names the columns. Fields are raw bytes; `\t`, `\n` and `\\` stand for tab,
//! newline and backslash, any other backslash for itself. Lines end with LF or CRLF; a byte-order
//! mark at the beginning and blank lines are skipped.

use std::fmt;

use crate::limits::{MAX_HINT, MAX_ID};
use crate::options::sched;
use crate::policy::Sched;
use crate::suggest::nearest;
use crate::thread::{Thread, cgroup_path, cut, without_workqueue};

/// The columns, in the order that `write` gives them. The first one is required.
pub const COLUMNS: [&str; 10] = [
    "thread", "process", "cgroup", "uid", "gid", "nice", "kthread", "leader", "sched", "hint",
];

/// A row or header that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TsvError {
    /// 1-based.
    pub line: usize,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for TsvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for TsvError {}

/// The columns of a list, from its first line.
#[derive(Debug, Clone)]
pub struct Columns(Vec<&'static str>);

impl Columns {
    /// Reads the first line, with its line end or without. A byte-order mark before it is skipped.
    ///
    /// # Errors
    /// It does not name columns.
    pub fn read(header: &[u8]) -> Result<Self, TsvError> {
        let header = without_end(header.strip_prefix(BOM).unwrap_or(header));
        let named = match header.is_empty() {
            true => Err(format!(
                "no columns are named; the first line is one or more of {}",
                COLUMNS.join(", ")
            )),
            false => columns(header),
        };
        named
            .map(Self)
            .map_err(|message| TsvError { line: 1, message })
    }

    /// Reads a row, with its line end or without; nothing: it is blank. `line` is 1-based.
    ///
    /// # Errors
    /// It is no thread.
    pub fn row(&self, line: usize, row: &[u8]) -> Result<Option<Thread>, TsvError> {
        match without_end(row) {
            [] => Ok(None),
            row => thread(&self.0, row)
                .map(Some)
                .map_err(|message| TsvError { line, message }),
        }
    }
}

const BOM: &[u8] = b"\xef\xbb\xbf";

fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Reads all rows, or says everything that is wrong with them.
pub fn read(bytes: &[u8]) -> Result<Vec<Thread>, Vec<TsvError>> {
    let mut lines = bytes.split_inclusive(|b| *b == b'\n');
    let columns = Columns::read(lines.next().unwrap_or_default()).map_err(|error| vec![error])?;
    let (mut threads, mut errors) = (Vec::new(), Vec::new());
    for (i, line) in lines.enumerate() {
        match columns.row(i + 2, line) {
            Ok(thread) => threads.extend(thread),
            Err(error) => errors.push(error),
        }
    }
    match errors.is_empty() {
        true => Ok(threads),
        false => Err(errors),
    }
}

fn columns(header: &[u8]) -> Result<Vec<&'static str>, String> {
    let mut out: Vec<&'static str> = Vec::new();
    for field in header.split(|b| *b == b'\t') {
        let name = String::from_utf8_lossy(field);
        let Some(column) = COLUMNS.into_iter().find(|c| *c == name) else {
            let hint = match nearest(&name, COLUMNS) {
                Some(near) => format!("; did you mean `{near}`?"),
                None => format!("; the first line names the columns: {}", COLUMNS.join(", ")),
            };
            return Err(format!(
                "unknown column `{}`{hint}",
                crate::text::escape(field)
            ));
        };
        if out.contains(&column) {
            return Err(format!("column `{column}` is given twice"));
        }
        out.push(column);
    }
    if out.first() != Some(&"thread") {
        return Err("the first column must be `thread`".to_owned());
    }
    Ok(out)
}

fn thread(columns: &[&'static str], row: &[u8]) -> Result<Thread, String> {
    let fields: Vec<&[u8]> = row.split(|b| *b == b'\t').collect();
    if fields.len() != columns.len() {
        return Err(format!(
            "{} fields, but the first line names {} columns",
            fields.len(),
            columns.len()
        ));
    }
    let mut thread = Thread::named(&unescape(fields[0]));
    let mut leader = None;
    let (mut name, mut process) = (unescape(fields[0]), None);
    for (column, field) in columns.iter().zip(&fields).skip(1) {
        match *column {
            "process" => process = Some(unescape(field)),
            "cgroup" => thread.cgroup = cgroup_path(&unescape(field)),
            "uid" => thread.user = number(column, field, 0, MAX_ID)? as u64,
            "gid" => thread.group = number(column, field, 0, MAX_ID)? as u64,
            "nice" => thread.nice = number(column, field, -20, 19)? as i8,
            "kthread" => thread.kthread = number(column, field, 0, 1)? == 1,
            "leader" => leader = Some(number(column, field, 0, 1)? == 1),
            "sched" => thread.sched = sched_of(field)?,
            "hint" => thread.hint = number(column, field, 0, MAX_HINT)? as u16,
            _ => unreachable!("every column has its field"),
        }
    }
    if thread.kthread {
        // As /proc shows it; the kernel's name ends before the work queue.
        name = without_workqueue(&name).to_vec();
        process = process.map(|p| without_workqueue(&p).to_vec());
    }
    thread.thread = cut(&name).to_vec();
    thread.process = process.map_or_else(|| thread.thread.clone(), |p| cut(&p).to_vec());
    thread.leader = leader.unwrap_or(thread.process == thread.thread);
    Ok(thread)
}

fn sched_of(field: &[u8]) -> Result<Sched, String> {
    std::str::from_utf8(field)
        .ok()
        .and_then(sched)
        .ok_or_else(|| {
            format!(
                "`sched` is `{}`, not normal, batch or idle",
                crate::text::escape(field)
            )
        })
}

fn number(column: &str, field: &[u8], min: i64, max: i64) -> Result<i64, String> {
    let text = std::str::from_utf8(field).ok();
    let value = text
        .and_then(|t| t.parse::<i64>().ok())
        .filter(|v| (min..=max).contains(v));
    value.ok_or_else(|| {
        format!(
            "`{column}` is `{}`, not a number from {min} to {max}",
            crate::text::escape(field)
        )
    })
}

fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut bytes = field.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let replaced = match (byte, bytes.peek()) {
            (b'\\', Some(b't')) => Some(b'\t'),
            (b'\\', Some(b'n')) => Some(b'\n'),
            (b'\\', Some(b'\\')) => Some(b'\\'),
            _ => None,
        };
        if replaced.is_some() {
            bytes.next();
        }
        out.push(replaced.unwrap_or(byte));
    }
    out
}

/// Writes threads with every column. An id that is not a real one is written as 4294967295, which
/// no reader accepts: a snapshot holds real threads.
pub fn write<'a>(threads: impl IntoIterator<Item = &'a Thread>) -> Vec<u8> {
    let mut out = COLUMNS.join("\t").into_bytes();
    out.push(b'\n');
    for t in threads {
        for (i, bytes) in [&t.thread, &t.process, &t.cgroup].into_iter().enumerate() {
            if i > 0 {
                out.push(b'\t');
            }
            escape_into(bytes, &mut out);
        }
        let id = |id: u64| u32::try_from(id).unwrap_or(u32::MAX);
        let rest = format!(
            "\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n",
            id(t.user),
            id(t.group),
            t.nice,
            u8::from(t.kthread),
            u8::from(t.leader),
            t.sched.as_str(),
            t.hint
        );
        out.extend_from_slice(rest.as_bytes());
    }
    out
}

fn escape_into(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        match byte {
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\\' => out.extend_from_slice(b"\\\\"),
            _ => out.push(*byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let mut odd = Thread::named(b"a\tb\\n\n\xff\\");
        odd.process = b"x)) R 1 (".to_vec();
        odd.cgroup = b"/a.slice/app\\x2db.scope".to_vec();
        odd.leader = false;
        odd.nice = -5;
        odd.sched = Sched::Idle;
        odd.hint = 1023;
        odd.user = 1000;
        let threads = vec![Thread::named(b"srv-1"), odd];
        assert_eq!(read(&write(&threads)).unwrap(), threads);
    }

    #[test]
    fn missing_columns_take_the_documented_defaults() {
        let threads =
            read(b"thread\tprocess\r\nsrv-1\tadserver\r\nadserver\tadserver\r\n").unwrap();
        assert_eq!((threads[0].leader, threads[1].leader), (false, true));
        assert_eq!(threads[0].cgroup, b"/");
    }

    #[test]
    fn names_are_cut_and_kernel_workers_lose_their_queue() {
        let rows = b"thread\tkthread\nkworker/u8:0-ext4-rsv-conversion\t1\nrcu_exp_par_gp_kthread_worker/0\t1\n";
        let threads = read(rows).unwrap();
        assert_eq!(threads[0].thread, b"kworker/u8:0");
        assert_eq!(threads[1].thread, b"rcu_exp_par_gp_");
    }

    #[test]
    fn what_editors_add_is_no_part_of_a_list() {
        let plain = read(b"thread\tnice\na\t1\nb\t2\n").unwrap();
        let edited = b"\xef\xbb\xbfthread\tnice\r\n\r\na\t1\r\n\n\nb\t2\r\n\r\n";
        assert_eq!(read(edited).unwrap(), plain);
    }

    #[test]
    fn every_malformed_row_is_named_by_its_line() {
        let errors = read(b"thread\tnice\na\t1\nb\nc\t20\n\nd\tx\n").unwrap_err();
        let lines: Vec<usize> = errors.iter().map(|e| e.line).collect();
        assert_eq!(lines, [3, 4, 6]);
        assert!(errors[1].message.contains("-20 to 19"), "{}", errors[1]);
        for header in [
            "",
            "nice",
            "thread\tcolour",
            "thread\tnice\tnice",
            "process\tthread",
        ] {
            assert_eq!(read(header.as_bytes()).unwrap_err()[0].line, 1, "{header}");
        }
        assert!(
            read(b"thread\tproces\n").unwrap_err()[0]
                .message
                .contains("did you mean `process`")
        );
    }
}
