//! "did you mean": the known word that is closest to a misspelt one.

/// The candidate that a misspelt word most likely meant, if one is close.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).max(1) + 1;
    candidates
        .into_iter()
        .map(|c| {
            (
                strsim::damerau_levenshtein(&word.to_lowercase(), &c.to_lowercase()),
                c,
            )
        })
        .filter(|(distance, c)| *distance <= limit && *distance < c.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, c)| c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_its_word_and_nonsense_finds_none() {
        assert_eq!(nearest("wieght", ["weight", "slice"]), Some("weight"));
        assert_eq!(nearest("tread", ["thread", "process"]), Some("thread"));
        assert_eq!(nearest("zzz", ["thread", "process"]), None);
    }
}
