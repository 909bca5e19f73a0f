//! Globs on cgroup paths: components, `**`, and the regex of both.
//!
//! Valid for well-formed paths, which is all that the kernel has: one leading slash, no trailing
//! one, no empty component.

use super::parse::parse;
use super::{Fault, Item, Piece, Wild, emit};
use crate::limits::MAX_GLOB_EXPANSIONS;

/// The regex of a glob on cgroup paths. Leading and trailing slashes of the text do not matter.
pub fn path_regex(text: &str) -> Result<String, Fault> {
    let mut items = parse(text)?;
    forbid_slash(&mut items)?;
    let expansions = expand(&items, text)?;
    let several = expansions.len() > 1;
    let mut out = Vec::new();
    for items in &expansions {
        match components(items, text)? {
            Some(components) => out.push(path(&components)),
            None if several => {} // an alternative with an empty component matches no path
            None => return Err(empty_component(text)),
        }
    }
    out.dedup();
    match out.len() {
        0 => Err(empty_component(text)),
        1 => Ok(out.remove(0)),
        _ => Ok(format!("(?:{})", out.join("|"))),
    }
}

fn empty_component(text: &str) -> Fault {
    let at = text.find("//").unwrap_or(0);
    Fault {
        range: at..(at + 2).min(text.len()),
        label: "an empty component".to_owned(),
        help: Some("components of a cgroup path are never empty"),
    }
}

/// Classes of a path glob never match `/`.
fn forbid_slash(items: &mut [Item]) -> Result<(), Fault> {
    for item in items {
        match &mut item.piece {
            Piece::Class(set) => {
                set[usize::from(b'/')] = false;
                if !set.contains(&true) {
                    return Err(Fault {
                        range: item.at..item.at + 1,
                        label: "this class matches nothing".to_owned(),
                        help: Some("a class on cgroup paths never matches `/`"),
                    });
                }
            }
            Piece::Alternates(all) => {
                for alternative in all {
                    forbid_slash(alternative)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn is_slash(item: &Item) -> bool {
    item.piece == Piece::Byte(b'/')
}

/// Writes braces out where an alternative holds a `/` or a `**`, so that every component of the
/// results is a component of the path.
fn expand(items: &[Item], text: &str) -> Result<Vec<Vec<Item>>, Fault> {
    let mut out: Vec<Vec<Item>> = vec![Vec::new()];
    for item in items {
        match &item.piece {
            Piece::Alternates(all)
                if all
                    .iter()
                    .any(|a| a.iter().any(is_slash) || doubled(a).is_some()) =>
            {
                if out.len() * all.len() > MAX_GLOB_EXPANSIONS {
                    return Err(Fault {
                        range: item.at..text.len(),
                        label: format!("stands for more than {MAX_GLOB_EXPANSIONS} globs"),
                        help: Some("write a list of globs instead of braces with `/` inside"),
                    });
                }
                out = out
                    .iter()
                    .flat_map(|head| {
                        all.iter()
                            .map(move |tail| [head.as_slice(), tail.as_slice()].concat())
                    })
                    .collect();
            }
            _ => out.iter_mut().for_each(|head| head.push(item.clone())),
        }
    }
    Ok(out)
}

/// Where two stars are written side by side. Stars that only meet when braces are written out
/// stay two single ones.
fn doubled(items: &[Item]) -> Option<usize> {
    let is_star = |item: &Item| item.piece == Piece::Star;
    items
        .windows(2)
        .find(|w| is_star(&w[0]) && is_star(&w[1]) && w[0].at + 1 == w[1].at)
        .map(|w| w[0].at)
}

#[derive(Debug, PartialEq)]
enum Component<'a> {
    /// `**`: zero or more components.
    Many,
    One(&'a [Item]),
}

/// The components, without leading and trailing slashes; `None` if one in between is empty.
fn components<'a>(items: &'a [Item], text: &str) -> Result<Option<Vec<Component<'a>>>, Fault> {
    let mut parts: Vec<&[Item]> = items.split(is_slash).collect();
    while parts.first().is_some_and(|p| p.is_empty()) {
        parts.remove(0);
    }
    while parts.last().is_some_and(|p| p.is_empty()) {
        parts.pop();
    }
    let mut out = Vec::new();
    for part in parts {
        if part.is_empty() {
            return Ok(None);
        }
        let two_stars = part.len() == 2 && doubled(part).is_some();
        if !two_stars {
            if let Some(at) = doubled(part) {
                return Err(Fault {
                    range: at..(at + 2).min(text.len()),
                    label: "`**` may stand only as a whole component".to_owned(),
                    help: Some(
                        "write `*` for part of a component, `/**/` for any number of components",
                    ),
                });
            }
            out.push(Component::One(part));
        } else if out.last() != Some(&Component::Many) {
            out.push(Component::Many);
        }
    }
    Ok(Some(out))
}

/// Valid for well-formed paths, which is all that the kernel has: one leading slash, no trailing
/// one, no empty component. So `.*` before a `/` ends at the end of a component.
fn path(components: &[Component<'_>]) -> String {
    if components.iter().all(|c| *c == Component::Many) {
        return if components.is_empty() {
            "/".to_owned()
        } else {
            "/.*".to_owned()
        };
    }
    let mut out = String::new();
    for (i, component) in components.iter().enumerate() {
        match component {
            Component::Many if i == 0 => out.push_str(".*"),
            Component::Many => out.push_str("(?:/.*)?"),
            Component::One(items) => {
                out.push('/');
                emit_not_empty(items, &mut out);
            }
        }
    }
    out
}

/// A component's regex without the empty string, which would match the root.
fn emit_not_empty(items: &[Item], out: &mut String) {
    if !items.iter().all(nullable) {
        return emit(items, &Wild::PATH, out);
    }
    if items.iter().any(accepts_all) {
        return out.push_str("[^/]+");
    }
    // Only braces with an empty alternative: the first that is not empty, then the others.
    let mut ways = Vec::new();
    for (i, item) in items.iter().enumerate() {
        let Piece::Alternates(all) = &item.piece else {
            continue;
        };
        let full: Vec<Vec<Item>> = all.iter().filter(|a| !a.is_empty()).cloned().collect();
        if full.is_empty() {
            continue;
        }
        let mut way = String::new();
        emit(
            &[Item {
                at: item.at,
                piece: Piece::Alternates(full),
            }],
            &Wild::PATH,
            &mut way,
        );
        emit(&items[i + 1..], &Wild::PATH, &mut way);
        ways.push(way);
    }
    // `{}` and `{,}` alone leave nothing: a class that no byte is in.
    out.push_str(&if ways.is_empty() {
        "[^\\x00-\\xff]".to_owned()
    } else {
        format!("(?:{})", ways.join("|"))
    });
}

fn nullable(item: &Item) -> bool {
    match &item.piece {
        Piece::Star => true,
        Piece::Alternates(all) => all.iter().any(|a| a.iter().all(nullable)),
        _ => false,
    }
}

/// Whether a piece alone accepts every run of bytes.
fn accepts_all(item: &Item) -> bool {
    match &item.piece {
        Piece::Star => true,
        Piece::Alternates(all) => all
            .iter()
            .any(|a| !a.is_empty() && a.iter().all(accepts_all)),
        _ => false,
    }
}
