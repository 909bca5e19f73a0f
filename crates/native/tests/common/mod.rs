//! Policies for the tests.

use twopool_policy::compile::{Compiled, Input, Role, compile};
use twopool_policy::image::Image;
use twopool_policy::policy::Policy;
use twopool_policy::resolve::NoNames;

/// Compiles one policy file; panics with its diagnostics if it does not load.
pub fn policy(text: &str) -> (Policy, Image) {
    let input = Input {
        name: "policy.toml".to_owned(),
        role: Role::Policy,
        bytes: text.as_bytes().to_vec(),
    };
    let Compiled {
        policy,
        image,
        diagnostics,
        ..
    } = compile(&[input], &NoNames);
    match (policy, image) {
        (Some(policy), Some(image)) => (policy, image),
        _ => panic!("{diagnostics:#?}\n{text}"),
    }
}
