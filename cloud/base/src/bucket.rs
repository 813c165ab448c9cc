//! A bucket of an S3-compatible store.

use std::time::Duration;

use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::{BackoffConfig, ClientConfigKey, RetryConfig};

/// Timeout of one request, including the transfer of a part.
const TIMEOUT: &str = "120s";

/// A bucket, with credentials from the usual AWS_* variables.
pub fn open(bucket: &str) -> object_store::Result<AmazonS3> {
    let retry = RetryConfig {
        backoff: BackoffConfig::default(),
        max_retries: 3,
        retry_timeout: Duration::from_secs(60),
    };
    let timeout = AmazonS3ConfigKey::Client(ClientConfigKey::Timeout);
    AmazonS3Builder::from_env()
        .with_config(timeout, TIMEOUT)
        .with_retry(retry)
        .with_bucket_name(bucket)
        .build()
}
