//! What an import tells people. Programs read the notes themselves.

use std::fmt::Write;

use super::{Imported, Note, NoteKind};

/// Notes of one kind that are listed; the policy's comments name the others too.
const LISTED: usize = 20;

/// The notes by kind, and a line that sums up.
pub fn report(imported: &Imported) -> String {
    let mut text = String::new();
    for kind in NoteKind::ALL {
        let notes: Vec<&Note> = imported.notes.iter().filter(|n| n.kind == *kind).collect();
        if notes.is_empty() {
            continue;
        }
        let _ = writeln!(text, "{} ({}):", kind.heading(), notes.len());
        for note in notes.iter().take(LISTED) {
            match &note.place {
                Some((file, line)) => {
                    let _ = writeln!(text, "  {file}:{line}: {}", note.text);
                }
                None => {
                    let _ = writeln!(text, "  {}", note.text);
                }
            }
        }
        if notes.len() > LISTED {
            let more = notes.len() - LISTED;
            let _ = writeln!(text, "  ... and {more} more; --format json lists all");
        }
    }
    let (read, kept, rules) = (imported.read, imported.kept, imported.rules);
    let end = if rules == 1 { "" } else { "s" };
    let _ = writeln!(
        text,
        "{kept} of {read} imported, as {rules} rule{end} of a policy"
    );
    text
}
