//! A real S3 server (s3s, on a directory) that checks signatures, on a free port of this machine.

use std::path::PathBuf;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use s3s_fs::FileSystem;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

const ACCESS_KEY: &str = "AKIAHUBTESTSHUBTESTS";
const SECRET_KEY: &str = "hub tests, not a secret of anybody";
pub const BUCKET: &str = "hub-files";

/// Ends when it is dropped.
pub struct S3Server {
    pub url: String,
    dir: TempDir,
    serving: JoinHandle<()>,
}

impl S3Server {
    pub async fn start() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(dir.path().join(BUCKET)).expect("a bucket");
        let mut builder = S3ServiceBuilder::new(FileSystem::new(dir.path()).expect("a store"));
        builder.set_auth(SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY));
        let service = builder.build();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let serving = tokio::spawn(async move {
            // They end with the server.
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                while connections.try_join_next().is_some() {}
                let service = service.clone();
                connections.spawn(async move {
                    let connection = auto::Builder::new(TokioExecutor::new());
                    // A client may disconnect.
                    let _ = connection
                        .serve_connection(TokioIo::new(socket), service)
                        .await;
                });
            }
        });
        Self { url, dir, serving }
    }

    /// What a service needs to use it.
    pub fn environment(&self) -> Vec<(&str, &str)> {
        vec![
            ("AWS_ACCESS_KEY_ID", ACCESS_KEY),
            ("AWS_SECRET_ACCESS_KEY", SECRET_KEY),
            ("AWS_REGION", "eu-central-1"),
            ("AWS_ENDPOINT_URL", &self.url),
            ("AWS_ALLOW_HTTP", "true"),
        ]
    }

    /// The bytes of an object; nothing when there is none.
    pub fn object(&self, key: &str) -> Option<Vec<u8>> {
        std::fs::read(self.dir.path().join(BUCKET).join(key)).ok()
    }

    /// Everything that lies in the store, parts of unfinished uploads included.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.dir.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path)
                } else {
                    found.push(path)
                }
            }
        }
        found
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
