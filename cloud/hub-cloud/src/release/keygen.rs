//! `hub-cloud release keygen`: creates a minisign key pair.

use std::path::{Path, PathBuf};

use minisign::KeyPair;

use super::{Failure, Result, failed, password, with_suffix, write_atomically};

pub const HELP: &str = "\
NAME.key is the secret key: protect it with a password and keep it offline. NAME.pub is the public
key, which verifies. Both files have the format of the minisign program. Existing files are never
overwritten.

Example: hub-cloud release keygen --out release --password-stdin < password.txt";

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Write NAME.key and NAME.pub
    #[arg(long, value_name = "NAME")]
    out: PathBuf,

    /// Read the password of the key from the first line of standard input
    #[arg(
        long,
        required_unless_present = "no_password",
        conflicts_with = "no_password"
    )]
    password_stdin: bool,

    /// Create a key without a password: everybody who can read the file can sign with it
    #[arg(long)]
    no_password: bool,
}

/// Returns a message for the operator.
pub fn run(options: &Options) -> Result<String> {
    let (secret, public) = (
        with_suffix(&options.out, ".key"),
        with_suffix(&options.out, ".pub"),
    );
    refuse_existing(&secret)?;
    refuse_existing(&public)?;
    let pair = match password(options.password_stdin)? {
        Some(password) => KeyPair::generate_encrypted_keypair(Some(password)),
        None => KeyPair::generate_unencrypted_keypair(),
    };
    let texts = pair.and_then(|pair| {
        let id = pair
            .sk
            .keynum()
            .iter()
            .rev()
            .map(|byte| format!("{byte:02X}"))
            .collect::<String>();
        let public = pair.pk.to_box()?.to_string();
        Ok((
            pair.sk
                .to_box(Some(&format!("hub-cloud release key {id}")))?
                .to_string(),
            public,
            id,
        ))
    });
    let (secret_text, public_text, id) = texts.map_err(|error| failed(&secret, error))?;
    write_atomically(&secret, &secret_text, 0o600)?;
    write_atomically(&public, &public_text, 0o644)?;
    Ok(format!(
        "created key {id}: {} signs, {} verifies",
        secret.display(),
        public.display()
    ))
}

fn refuse_existing(path: &Path) -> Result<()> {
    match path.try_exists() {
        Ok(false) => Ok(()),
        Ok(true) => Err(Failure::Failed(format!(
            "{} already exists; choose another name with --out",
            path.display()
        ))),
        Err(error) => Err(failed(path, error)),
    }
}
