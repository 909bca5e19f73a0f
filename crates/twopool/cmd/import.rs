//! `import`: rules of other tools as a policy, and what one must know about the translation.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use twopool_policy::compile::{Compiled, Input, Role, compile_unproven};
use twopool_policy::import::{self, Imported};

use crate::cli::{Foreign, Format, Import};
use crate::exit::{Exit, Failure};
use crate::host::foreign;
use crate::host::names::HostNames;
use crate::output;
use crate::report::Report;

/// Imports, checks what came out, and reports.
pub fn run(args: &Import) -> Result<Exit, Failure> {
    let imported = match args.from {
        Foreign::Ananicy => {
            let sources = foreign::rule_files(&args.path)?;
            import::ananicy::import(&args.path.to_string_lossy(), &sources)
        }
        Foreign::ScxLayered => import::layered::import(&foreign::file(&args.path)?),
    };
    let compiled = checked(&imported);
    if let Some(path) = &args.output {
        write(path, &imported.policy)?;
    }
    match args.format {
        Format::Human if args.output.is_none() => output::result(&imported.policy)?,
        Format::Human => {}
        Format::Json => output::json(&document(&imported))?,
    }
    output::error_text(&import::report(&imported));
    if !compiled.is_valid() {
        output::findings(&Report::of(&compiled, output::stderr_colour()));
        output::error_text("error: the imported policy cannot be loaded as it is, see above\n");
    }
    Ok(match compiled.is_valid() && !imported.is_malformed() {
        true => Exit::Done,
        false => Exit::Rejected,
    })
}

/// A rule set may be larger than a policy can be; `check` would say so, so we do.
fn checked(imported: &Imported) -> Compiled {
    let input = Input {
        name: "<imported>".to_owned(),
        role: Role::Policy,
        bytes: imported.policy.clone().into_bytes(),
    };
    compile_unproven(&[input], &HostNames)
}

fn write(path: &Path, policy: &str) -> Result<(), Failure> {
    fs::write(path, policy).map_err(|error| {
        let message = format!("cannot write {}: {error}", path.display());
        Failure::new(Exit::Unavailable, "output", message)
    })
}

fn document(imported: &Imported) -> Value {
    let notes: Vec<Value> = imported
        .notes
        .iter()
        .map(|note| {
            json!({
                "kind": note.kind.as_str(),
                "filename": note.place.as_ref().map(|(file, _)| file),
                "line": note.place.as_ref().map(|(_, line)| line),
                "message": note.text,
            })
        })
        .collect();
    json!({
        "format_version": "1",
        "read": imported.read,
        "kept": imported.kept,
        "rules": imported.rules,
        "policy": imported.policy,
        "notes": notes,
    })
}
