//! The layout that the compiler writes by is the one that C reads by. A field that moved on one
//! side alone would make every image garbage in the kernel.

use std::collections::BTreeMap;

use twopool_native::{Fact, constants, image_fields, struct_sizes};
use twopool_policy::image;

#[test]
fn every_field_of_the_image_is_where_the_compiler_writes_it() {
    let rust: Vec<Fact> = image::FIELDS
        .iter()
        .map(|(name, offset, size)| Fact {
            name: (*name).to_owned(),
            offset: *offset as u64,
            value: *size as u64,
        })
        .collect();
    assert_eq!(image_fields(), rust);
}

#[test]
fn structs_inside_the_image_have_the_same_size() {
    let rust = BTreeMap::from([
        ("dfa", image::size::DFA),
        ("unit", image::size::UNIT),
        ("automata", image::size::AUTOMATA),
        ("name_entry", image::size::NAME_ENTRY),
        ("name_dim", image::size::NAME_DIM),
        ("ranges", image::size::RANGES),
        ("rule_settings", image::size::RULE_SETTINGS),
        ("pool_settings", image::size::POOL_SETTINGS),
        ("policy_image", image::size::POLICY_IMAGE),
    ]);
    assert_eq!(struct_sizes().len(), rust.len());
    for fact in struct_sizes() {
        assert_eq!(
            Some(&(fact.value as usize)),
            rust.get(&*fact.name),
            "{}",
            fact.name
        );
    }
}

#[test]
fn limits_are_the_same() {
    let rust = BTreeMap::from([
        ("IMAGE_ABI", u64::from(image::IMAGE_ABI)),
        ("MAX_RULES", image::MAX_RULES as u64),
        ("RULE_SLOTS", image::RULE_SLOTS as u64),
        ("MAX_ALTS", image::MAX_ALTS as u64),
        ("MAX_ROW_WORDS", image::MAX_ROW_WORDS as u64),
        ("MAX_EXACT_NAMES", image::MAX_EXACT_NAMES as u64),
        ("MAX_BOUNDS", image::MAX_BOUNDS as u64),
        ("MAX_DFAS", image::MAX_DFAS as u64),
        ("MAX_NAME_UNITS", image::MAX_NAME_UNITS as u64),
        ("MAX_PATH_UNITS", image::MAX_PATH_UNITS as u64),
        ("UNIT_SHIFTS", image::UNIT_SHIFTS as u64),
        ("POOL_WORDS", image::POOL_WORDS as u64),
        ("STEAL_OFF", image::STEAL_OFF),
        ("CPUS_PERCENT", u64::from(image::CPUS_PERCENT)),
        ("RULE_HINTS", u64::from(image::RULE_HINTS)),
    ]);
    assert_eq!(constants().len(), rust.len());
    for fact in constants() {
        assert_eq!(Some(&fact.value), rust.get(&*fact.name), "{}", fact.name);
    }
}
