//! `schema`: the JSON Schema of policy files, of the version that prints it.

use twopool_policy::schema;

use crate::exit::{Exit, Failure};
use crate::output;

/// Prints it.
pub fn run() -> Result<Exit, Failure> {
    output::result(&schema::text())?;
    Ok(Exit::Done)
}
