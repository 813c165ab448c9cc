//! `release keygen`.

use std::path::{Path, PathBuf};

use minisign::KeyPair;

use super::{Failure, Result, beside, failed, password, write_whole};

pub const HELP: &str = "\
NAME.key signs: keep it offline, with a password. NAME.pub checks, and is no secret. Both are files of the minisign program. A key that is there
already is never overwritten.

Example: hub-cloud release keygen --out release --password-stdin < password.txt";

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Write NAME.key and NAME.pub
    #[arg(long, value_name = "NAME")]
    out: PathBuf,

    /// Read the password of the key from the first line of standard input
    #[arg(long, required_unless_present = "no_password", conflicts_with = "no_password")]
    password_stdin: bool,

    /// Make a key that whoever reads the file can sign with
    #[arg(long)]
    no_password: bool,
}

/// Answers what was done, in words.
pub fn run(options: &Options) -> Result<String> {
    let (secret, public) = (beside(&options.out, ".key"), beside(&options.out, ".pub"));
    refuse_existing(&secret)?;
    refuse_existing(&public)?;
    let pair = match password(options.password_stdin)? {
        Some(password) => KeyPair::generate_encrypted_keypair(Some(password)),
        None => KeyPair::generate_unencrypted_keypair(),
    };
    let texts = pair.and_then(|pair| {
        let id = pair.sk.keynum().iter().rev().map(|byte| format!("{byte:02X}")).collect::<String>();
        let public = pair.pk.to_box()?.to_string();
        Ok((pair.sk.to_box(Some(&format!("hub-cloud release key {id}")))?.to_string(), public, id))
    });
    let (secret_text, public_text, id) = texts.map_err(|error| failed(&secret, error))?;
    write_whole(&secret, &secret_text, 0o600)?;
    write_whole(&public, &public_text, 0o644)?;
    Ok(format!("{} signs, {} checks: key {id}", secret.display(), public.display()))
}

fn refuse_existing(path: &Path) -> Result<()> {
    match path.try_exists() {
        Ok(false) => Ok(()),
        Ok(true) => Err(Failure::Failed(format!("{} is there already; name another file with --out", path.display()))),
        Err(error) => Err(failed(path, error)),
    }
}
