//! The system that the helper works on: usually the running one.

use std::io;
use std::path::{Path, PathBuf};

pub struct Root(PathBuf);

impl Root {
    pub fn new(path: &Path) -> io::Result<Self> {
        path.canonicalize().map(Self)
    }

    /// A path in it, without the leading slash.
    pub fn join(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    pub fn is_running(&self) -> bool {
        self.0 == Path::new("/")
    }
}
