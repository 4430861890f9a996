//! From a source to a loaded object: from the cache, or built wherever that is possible.
//!
//! The cache never turns a run into a failure, and neither does one folder: what is broken is built again, in the cache's folder
//! or else in a temporary one, and what was wrong is told once.

use crate::cache::{self, Cache};
use crate::compile::Compiler;
use crate::load::Object;
use crate::{SimError, tell};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// What to build.
struct Job<'a> {
    compiler: Compiler,
    pattern: &'a str,
    text: &'a str,
}

/// The object of `text`, from the cache or built.
pub(crate) fn object(pattern: &str, text: &str) -> Result<Object, SimError> {
    let job = Job { compiler: Compiler::find()?, pattern, text };
    job.object(cache::folder(), &temporary_folders())
}

/// The object of `text`, built. Answers by which compiler, too.
pub(crate) fn anew(pattern: &str, text: &str) -> Result<(Object, String), SimError> {
    let job = Job { compiler: Compiler::find()?, pattern, text };
    let object = job.elsewhere(&temporary_folders(), Vec::new())?;
    Ok((object, job.compiler.name()))
}

/// Where to build what is not kept: the first that can be used is taken.
fn temporary_folders() -> Vec<PathBuf> {
    let mut folders = vec![std::env::temp_dir()];
    for usual in ["/tmp", "/var/tmp", "/dev/shm"].map(PathBuf::from) {
        if !folders.contains(&usual) {
            folders.push(usual);
        }
    }
    folders
}

impl Job<'_> {
    fn object(&self, cache: Option<PathBuf>, temporary: &[PathBuf]) -> Result<Object, SimError> {
        let cached = Cache::open(cache).and_then(|cache| {
            let kept = self.kept(&cache);
            kept.map_err(|error| match cache::try_out(cache.folder()) {
                Ok(()) => error,
                Err(full) => SimError::Cache { reason: format!("`{}`: {full}", cache.folder().display()) },
            })
        });
        match cached {
            Err(error @ (SimError::Cache { .. } | SimError::Load { .. } | SimError::Io { .. })) => {
                let object = self.elsewhere(temporary, vec![error.to_string()])?;
                tell::once(&error);
                Ok(object)
            }
            cached => cached,
        }
    }

    /// The object in `cache`, put there if it was not.
    fn kept(&self, cache: &Cache) -> Result<Object, SimError> {
        let key = cache::key(&self.compiler, self.text);
        if let Some(path) = cache.find(&key) {
            match self.load(&path) {
                Ok(object) => return Ok(object),
                Err(_) => cache.forget(&key),
            }
        }
        let (place, object) = self.build(cache.folder())?;
        match cache.keep(&key, &place.path().join("kernel.cpp"), &object) {
            Ok(path) => self.load(&path),
            Err(error) => {
                tell::once(&error);
                self.load(&object)
            }
        }
    }

    /// The object, built in the first of `folders` where that can be done. What went wrong so far is in `tried`.
    fn elsewhere(&self, folders: &[PathBuf], mut tried: Vec<String>) -> Result<Object, SimError> {
        for folder in folders {
            // The file may go once it is loaded.
            let error = match self.build(folder).and_then(|(_place, object)| self.load(&object)) {
                Ok(object) => return Ok(object),
                Err(error) => error,
            };
            match cache::try_out(folder) {
                Ok(()) => return Err(error),
                Err(unusable) => tried.push(format!("`{}`: {unusable}", folder.display())),
            }
        }
        Err(SimError::NoPlace { tried: tried.join("; ") })
    }

    /// Builds in a folder of its own in `folder`, which lasts as long as what is returned.
    fn build(&self, folder: &Path) -> Result<(TempDir, PathBuf), SimError> {
        let io = |action, path: &Path, source| SimError::Io { action, path: path.to_owned(), source };
        let place = cache::building_place(folder).map_err(|e| io("build in", folder, e))?;
        let (source, object) = (place.path().join("kernel.cpp"), place.path().join("kernel.so"));
        fs::write(&source, self.text).map_err(|e| io("write", &source, e))?;
        self.compiler.build(self.pattern, self.text, &source, &object)?;
        Ok((place, object))
    }

    fn load(&self, path: &Path) -> Result<Object, SimError> {
        Object::load(path, self.compiler.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const TEXT: &str = "extern \"C\" __attribute__((visibility(\"default\"))) int answer() { return 42; }";

    fn job() -> Job<'static> {
        Job { compiler: Compiler::find().unwrap(), pattern: "test", text: TEXT }
    }

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names = names.collect::<Vec<_>>();
        names.sort();
        names
    }

    #[test]
    fn what_was_built_is_found_again_and_what_is_broken_is_built_again() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("cache");
        let built = || job().object(Some(folder.clone()), &[]).unwrap().path().to_owned();
        let first = built();
        let files = names(&folder);
        assert_eq!(files.len(), 3, "{files:?}");
        let written = fs::metadata(&first).unwrap().modified().unwrap();
        assert_eq!(built(), first);
        assert_eq!(fs::metadata(&first).unwrap().modified().unwrap(), written);

        let whole = fs::read(&first).unwrap();
        fs::write(&first, &whole[..whole.len() / 2]).unwrap();
        assert_eq!(built(), first);
        assert_eq!(fs::read(&first).unwrap().len(), whole.len());
        assert_eq!(names(&folder), files);
    }

    #[test]
    fn a_warm_cache_needs_no_temporary_folder() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("cache");
        let gone = [root.path().join("gone")];
        for _ in 0..2 {
            let object = job().object(Some(folder.clone()), &gone).unwrap();
            assert!(object.path().starts_with(&folder));
        }
    }

    #[test]
    fn a_folder_that_cannot_be_used_costs_a_build_elsewhere() {
        let root = tempfile::tempdir().unwrap();
        let (file, open, good) =
            (root.path().join("file"), root.path().join("open"), root.path().join("good"));
        fs::write(&file, "").unwrap();
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(&good).unwrap();
        let temporary = [root.path().join("gone"), file.clone(), good.clone()];
        for cache in [None, Some(file.join("below a file")), Some(open)] {
            let object = job().object(cache.clone(), &temporary).unwrap();
            assert!(object.path().starts_with(&good), "{cache:?}");
            assert!(names(&good).is_empty(), "nothing is left of it once it is loaded");
        }
        let error = job().object(None, &temporary[..2]).unwrap_err().to_string();
        assert!(error.contains("no cache folder") && error.contains("gone`: "), "{error}");
        assert!(error.contains("TMPDIR"), "{error}");
    }

    #[test]
    fn what_the_compiler_refuses_is_not_the_folders_fault() {
        let root = tempfile::tempdir().unwrap();
        let job = Job { text: "nonsense", ..job() };
        for cache in [None, Some(root.path().join("cache"))] {
            let error = job.object(cache, &[root.path().to_owned()]).unwrap_err();
            assert!(matches!(error, SimError::Compile { .. }), "{error}");
        }
    }
}
