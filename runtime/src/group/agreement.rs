//! What all ranks of a group must have in common.

/// Names and values, for comparing and for telling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Agreement(Vec<(&'static str, String)>);

impl Agreement {
    pub(crate) fn new(on: Vec<(&'static str, String)>) -> Agreement {
        Agreement(on)
    }

    /// The first thing in which `other` differs: its name, this one's value and the other's.
    pub(crate) fn difference(&self, other: &Agreement) -> Option<(&'static str, String, String)> {
        let pairs = self.0.iter().zip(&other.0);
        pairs.into_iter().find(|(a, b)| a != b).map(|(a, b)| (a.0, a.1.clone(), b.1.clone()))
    }
}
