//! A list of threads from a TSV file or standard input, however long, in bounded memory.
//!
//! A list is walked at least twice: once to find what is malformed, then for its threads. So a list
//! with a malformed row gives no thread at all.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::Path;

use twopool_diag::printable;
use twopool_policy::thread::Thread;
use twopool_policy::tsv::{Columns, TsvError};

use crate::cli::Format;
use crate::exit::{Exit, Failure};
use crate::host::input::open_list;
use crate::output;

/// Bytes of one line; a name and a path with every byte escaped are a fraction of it.
const MAX_LINE_BYTES: u64 = 64 << 10;
/// Bytes of a list that comes through a pipe, which must be kept to be walked twice.
const MAX_PIPED_BYTES: u64 = 1 << 30;
/// Malformed rows that are named; the rest is counted.
const MAX_NAMED: usize = 100;

/// A list without malformed rows.
pub(super) struct ThreadList {
    name: String,
    file: File,
    /// Threads that the first walk found.
    rows: usize,
}

impl ThreadList {
    /// Opens a file, or standard input for `-`, and looks at every row. What is malformed is
    /// reported and is the command's result.
    pub fn open(path: &Path, format: Format) -> Result<Result<Self, Exit>, Failure> {
        let piped = path == Path::new("-");
        let (name, file) = match piped {
            true => ("<stdin>".to_owned(), keep_stdin().map_err(unreadable)?),
            false => (path.display().to_string(), open_list(path)?),
        };
        if piped && file.metadata().map_err(unreadable)?.len() > MAX_PIPED_BYTES {
            let message = format!("{name}: more than {MAX_PIPED_BYTES} bytes; use a file");
            return malformed(&[message], format).map(Err);
        }
        let mut wrong = Wrong::default();
        let rows = walk(&file, |row| {
            if let Err(error) = row {
                wrong.note(&name, &error);
            }
            Ok(())
        });
        let rows = rows.or_else(|stop| stop.told(&name).map(|()| 0))?;
        match wrong.count {
            0 => Ok(Ok(Self { name, file, rows })),
            _ => malformed(&wrong.lines(), format).map(Err),
        }
    }

    /// Gives every thread, in the order of the list; as often as one likes. What `each` returns is
    /// an error of writing to standard output, and nothing more is given after it.
    ///
    /// # Errors
    /// The list cannot be read or is not what it was when it was opened, or standard output takes
    /// no more though somebody reads it.
    pub fn each(&mut self, mut each: impl FnMut(Thread) -> io::Result<()>) -> Result<(), Failure> {
        self.file.rewind().map_err(unreadable)?;
        let walked = walk(&self.file, |row| match row {
            Ok(thread) => each(thread).map_err(Stop::Writing),
            Err(error) => Err(Stop::Changed(format!(
                "line {}: {}",
                error.line, error.message
            ))),
        });
        let rows = self.rows;
        let walked = walked.and_then(|found| match found == rows {
            true => Ok(()),
            false => Err(Stop::Changed(format!("{rows} threads became {found}"))),
        });
        walked.or_else(|stop| stop.told(&self.name))
    }
}

/// Why a walk did not come to its end.
enum Stop {
    /// The list cannot be read.
    Reading(io::Error),
    /// Standard output takes no more.
    Writing(io::Error),
    /// The list is not what it was in the first walk.
    Changed(String),
}

impl Stop {
    /// As what the user is told, if anything: nobody may read our output any more.
    fn told(self, name: &str) -> Result<(), Failure> {
        match self {
            Stop::Reading(error) => Err(unreadable(error)),
            Stop::Writing(error) => output::written(Err(error)),
            Stop::Changed(how) => {
                let message = format!("{name} changed while it was read: {how}");
                Err(Failure::new(Exit::NoInput, "no-input", message))
            }
        }
    }
}

/// Malformed rows: the first ones, and how many there are.
#[derive(Default)]
struct Wrong {
    named: Vec<String>,
    count: usize,
}

impl Wrong {
    fn note(&mut self, name: &str, error: &TsvError) {
        self.count += 1;
        if self.named.len() < MAX_NAMED {
            let message = format!("{name}:{}: {}", error.line, error.message);
            self.named.push(message);
        }
    }

    fn lines(self) -> Vec<String> {
        let more = self.count - self.named.len();
        let more = (more > 0).then(|| format!("{more} more malformed rows"));
        self.named.into_iter().chain(more).collect()
    }
}

/// Gives every thread and every malformed row of a list, one by one; how many that were.
fn walk(
    list: &File,
    mut each: impl FnMut(Result<Thread, TsvError>) -> Result<(), Stop>,
) -> Result<usize, Stop> {
    let mut reader = BufReader::new(list);
    let (mut buffer, mut columns, mut count) = (Vec::new(), None, 0);
    for number in 1.. {
        let is_whole = next_line(&mut reader, &mut buffer).map_err(Stop::Reading)?;
        let Some(columns) = &columns else {
            match Columns::read(&buffer) {
                Ok(read) => columns = Some(read),
                Err(error) => return each(Err(error)).map(|()| 1),
            }
            continue;
        };
        if buffer.is_empty() {
            break;
        }
        let row = match is_whole {
            true => columns.row(number, &buffer),
            false => Err(TsvError {
                line: number,
                message: format!("longer than {MAX_LINE_BYTES} bytes"),
            }),
        };
        if let Some(row) = row.transpose() {
            count += 1;
            each(row)?;
        }
    }
    Ok(count)
}

/// The next line with its end; empty: there is none. False: it was too long and is cut.
fn next_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    reader
        .by_ref()
        .take(MAX_LINE_BYTES)
        .read_until(b'\n', line)?;
    if line.len() as u64 == MAX_LINE_BYTES && line.last() != Some(&b'\n') {
        reader.skip_until(b'\n')?;
        return Ok(false);
    }
    Ok(true)
}

fn malformed(lines: &[String], format: Format) -> Result<Exit, Failure> {
    for line in lines {
        output::error_text(&format!("error: {}\n", printable(line)));
    }
    if format == Format::Json {
        output::json_error("malformed-input", &lines.join("\n"))?;
    }
    Ok(Exit::Rejected)
}

/// Standard input in a file without a name.
fn keep_stdin() -> io::Result<File> {
    let path = std::env::temp_dir().join(format!("twopool-list-{}", std::process::id()));
    let mut options = File::options();
    let mut kept = options
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)?;
    fs::remove_file(&path)?;
    io::copy(&mut io::stdin().lock().take(MAX_PIPED_BYTES + 1), &mut kept)?;
    kept.rewind()?;
    Ok(kept)
}

fn unreadable(error: io::Error) -> Failure {
    Failure::new(
        Exit::NoInput,
        "no-input",
        format!("the list of threads cannot be read: {error}"),
    )
}
