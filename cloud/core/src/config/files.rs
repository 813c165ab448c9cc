//! The setting `files`.

use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;

use super::ConfigError;

/// The store of release files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilesConfig {
    Directory(PathBuf),
    S3 {
        bucket: String,
        /// The prefix, without leading or trailing slash. May be empty.
        prefix: String,
    },
}

pub fn files(url: Option<&str>, data_dir: &Path) -> Result<FilesConfig, ConfigError> {
    let Some(url) = url else {
        return Ok(FilesConfig::Directory(data_dir.join("files")));
    };
    let form = || ConfigError("files must be `file:///DIR` or `s3://BUCKET/PREFIX`".into());
    let parsed = reqwest::Url::parse(url).map_err(|_| form())?;
    let is_bare =
        parsed.username().is_empty() && parsed.password().is_none() && parsed.port().is_none();
    if !is_bare || parsed.query().is_some() || parsed.fragment().is_some() {
        return Err(form());
    }
    match (parsed.scheme(), parsed.host_str()) {
        ("file", None) => parsed
            .to_file_path()
            .map(FilesConfig::Directory)
            .map_err(|()| form()),
        ("s3", Some(bucket)) => {
            let prefix = percent_decode_str(parsed.path())
                .decode_utf8()
                .map_err(|_| form())?;
            Ok(FilesConfig::S3 {
                bucket: bucket.to_owned(),
                prefix: prefix.trim_matches('/').to_owned(),
            })
        }
        _ => Err(form()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_setting_accepts_a_directory_or_a_bucket() {
        let dir = Path::new("/srv/data");
        let files = |url: &str| super::files(Some(url), dir).expect(url);
        assert_eq!(
            files("file:///srv/hub%20files"),
            FilesConfig::Directory("/srv/hub files".into())
        );
        let s3 = |bucket: &str, prefix: &str| FilesConfig::S3 {
            bucket: bucket.into(),
            prefix: prefix.into(),
        };
        assert_eq!(files("s3://releases"), s3("releases", ""));
        assert_eq!(files("s3://releases/hubs/eu/"), s3("releases", "hubs/eu"));
        assert_eq!(
            super::files(None, dir).expect("a default"),
            FilesConfig::Directory("/srv/data/files".into())
        );
        for url in [
            "/srv/files",
            "file://host/dir",
            "s3://",
            "s3://key:secret@bucket/",
            "s3://bucket?region=x",
            "gs://bucket",
        ] {
            let error = super::files(Some(url), dir).expect_err(url).to_string();
            assert!(
                error.contains("files") && !error.contains("secret"),
                "{error}"
            );
        }
    }
}
