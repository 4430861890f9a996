//! A folder that nobody else could have put anything in.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

/// Makes `folder` if it is not there, and makes sure that nobody but this user could have put anything in it.
pub(super) fn private(folder: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    builder.mode(0o700);
    builder.create(folder)?;
    // SAFETY: it cannot fail, and no memory is involved.
    is_alone(folder, unsafe { libc::geteuid() })
}

/// Refuses a folder that is not `user`'s, or that others may enter; and links, whose owners may turn them elsewhere.
fn is_alone(folder: &Path, user: u32) -> std::io::Result<()> {
    let found = fs::symlink_metadata(folder)?;
    match found.is_dir() && found.uid() == user && found.mode() & 0o077 == 0 {
        true => Ok(()),
        false => Err(std::io::Error::new(
            std::io::ErrorKind::PermissionDenied,
            "others may enter it, or it is a link or another user's",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_folder_is_the_users_alone() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a/b");
        private(&folder).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        private(&folder).unwrap();
    }

    #[test]
    fn a_folder_that_others_could_fill_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("folder");
        private(&folder).unwrap();
        // SAFETY: as in `private`.
        let another = unsafe { libc::geteuid() } ^ 1;
        let link = root.path().join("link");
        std::os::unix::fs::symlink(&folder, &link).unwrap();
        assert!(is_alone(&folder, another).is_err() && private(&link).is_err());
        for mode in [0o770, 0o701, 0o755] {
            fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
            assert!(private(&folder).is_err(), "mode {mode:o}");
        }
    }
}
