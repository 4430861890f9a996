//! What the ranks of a group have together.

use crate::backend::{Backend, Info};
use crate::error::Error;
use crate::group::control::Control;
use crate::group::fork::{Family, Forks};
use crate::group::region::{Region, RegionKey};
use crate::group::rendezvous::Rendezvous;
use crate::sync::lock;
use seamline_codegen::Program;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

/// A group.
pub(crate) struct State {
    pub(crate) backend: Box<dyn Backend>,
    pub(crate) info: Info,
    /// By rank.
    pub(crate) controls: Vec<Control>,
    regions: Mutex<HashMap<RegionKey, Arc<Region>>>,
    pub(crate) rendezvous: Rendezvous,
    pub(crate) family: Arc<Family>,
    pub(crate) forks: Forks,
}

impl State {
    pub(crate) fn new(
        backend: Box<dyn Backend>,
        ranks: u32,
        family: Arc<Family>,
    ) -> Result<Arc<State>, Error> {
        let control = |rank| {
            let status = backend.allocate(rank, Control::WORDS, 0)?;
            Ok(Control { status, mirror: backend.mirror(rank, Control::WORDS)? })
        };
        Ok(Arc::new(State {
            controls: (0..ranks).map(control).collect::<Result<_, Error>>()?,
            info: backend.info(),
            backend,
            regions: Mutex::new(HashMap::new()),
            rendezvous: Rendezvous::new(ranks),
            family,
            forks: Forks::new(ranks),
        }))
    }

    /// A group of the same family, with nothing in it yet.
    pub(crate) fn fork(&self) -> Result<Arc<State>, Error> {
        State::new(self.backend.fork(), self.size(), Arc::clone(&self.family))
    }

    pub(crate) fn size(&self) -> u32 {
        self.controls.len() as u32
    }

    /// The region with this layout, made by the first kernel that needs it.
    pub(crate) fn region(&self, program: &Program, key: &RegionKey) -> Result<Arc<Region>, Error> {
        let mut regions = lock(&self.regions);
        if let Some(region) = regions.get(key) {
            return Ok(Arc::clone(region));
        }
        let region = Region::new(
            program,
            key,
            |rank, words, fill| self.backend.allocate(rank, words, fill),
            |owner, user, slots| self.backend.transport(owner, user).map(slots),
        );
        let region = Arc::new(region?);
        regions.insert(*key, Arc::clone(&region));
        Ok(region)
    }

    /// As if it were new.
    pub(crate) fn reset(&self) -> Result<(), Error> {
        self.backend.while_idle(&mut || {
            lock(&self.regions).values().try_for_each(|region| region.reset())?;
            self.controls.iter().try_for_each(Control::reset)
        })
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "group of {} on {:?}", self.size(), self.backend)
    }
}
