//! What a run can do without, told once per process.

use crate::SimError;
use std::collections::HashSet;
use std::sync::Mutex;

/// Warns of `trouble`, unless it has been told.
pub(crate) fn once(trouble: &SimError) {
    static TOLD: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    let text = trouble.to_string();
    let mut told = TOLD.lock().unwrap_or_else(|e| e.into_inner());
    if told.get_or_insert_default().insert(text.clone()) {
        tracing::warn!("{text}");
    }
}
