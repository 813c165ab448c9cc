//! Versions of the agent itself.

use hub_agent::helper_api::{HelperError, Reason, StagedAgent};

use crate::site::{Release, Site, reason};

fn stage(site: &Site, release: &Release, in_use: &[&str]) -> Result<StagedAgent, HelperError> {
    let in_use: Vec<String> = in_use.iter().map(|name| (*name).to_owned()).collect();
    site.helper().stage_agent(
        &release.manifest,
        &release.signature,
        &release.file,
        &in_use,
    )
}

fn versions(site: &Site) -> Vec<String> {
    let entries = std::fs::read_dir(site.path("var/lib/hub-agent-versions")).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.retain(|name| name != ".staging");
    names.sort();
    names
}

#[test]
fn at_most_three_versions_are_stored_and_none_in_use_is_removed() {
    let site = Site::new();
    let mut dirs = Vec::new();
    for number in 1..=3 {
        let release = site.agent(
            &format!("1.{number}.0"),
            number,
            format!("program {number}").as_bytes(),
        );
        let staged = stage(&site, &release, &[]).unwrap();
        assert!(
            staged.dir.starts_with(&format!("1.{number}.0-"))
                && staged.dir.len() == "1.1.0-".len() + 12
        );
        assert_eq!(
            stage(&site, &release, &[]).unwrap(),
            staged,
            "a repetition changes nothing"
        );
        let program = format!("var/lib/hub-agent-versions/{}/hub-agent", staged.dir);
        assert_eq!(
            std::fs::read(site.path(&program)).unwrap(),
            format!("program {number}").as_bytes()
        );
        assert!(
            site.everything()[&program].starts_with("100755 "),
            "it is executable, and only root can change it"
        );
        dirs.push(staged.dir);
    }
    let four = site.agent("1.4.0", 4, b"program 4");
    let before = site.everything();
    let all: Vec<&str> = dirs.iter().map(String::as_str).collect();
    assert_eq!(reason(stage(&site, &four, &all)), Reason::Conflict);
    assert_eq!(site.everything(), before);
    let staged = stage(&site, &four, &[&dirs[0]]).unwrap();
    assert_eq!(
        versions(&site),
        [all[0], all[2], staged.dir.as_str()],
        "the oldest unused version was removed"
    );

    let helper = site.helper();
    assert_eq!(
        reason(helper.clean_agent(&[], Some("../hub-apps"))),
        Reason::NotStaged
    );
    helper
        .clean_agent(&[dirs[0].clone()], Some(&staged.dir))
        .unwrap();
    assert_eq!(versions(&site), [all[0], staged.dir.as_str()]);
    let lower = site.agent("1.2.1", 2, b"program 2.1");
    assert_eq!(
        reason(stage(&site, &lower, &[])),
        Reason::CounterTooLow,
        "a confirmed version raises the counter"
    );
    helper.clean_agent(&[], None).unwrap();
    assert_eq!(versions(&site), Vec::<String>::new());
}

#[test]
fn the_same_program_has_the_counter_of_its_newest_manifest() {
    let site = Site::new();
    let [three, nine, five] = [3, 9, 5].map(|counter| site.agent("1.0.0", counter, b"program"));
    let staged = stage(&site, &three, &[]).unwrap();
    for again in [&nine, &five] {
        assert_eq!(stage(&site, again, &[]).unwrap(), staged);
    }
    site.helper().clean_agent(&[], Some(&staged.dir)).unwrap();
    assert_eq!(
        reason(stage(&site, &site.agent("1.0.1", 8, b"program 8"), &[])),
        Reason::CounterTooLow
    );
    stage(&site, &site.agent("1.0.2", 9, b"program 9"), &[]).unwrap();
}

#[test]
fn an_unconfirmed_version_does_not_raise_the_counter() {
    let site = Site::new();
    let tried = stage(&site, &site.agent("2.0.0", 9, b"new"), &[]).unwrap();
    site.helper().clean_agent(&[], None).unwrap();
    assert!(!versions(&site).contains(&tried.dir));
    stage(&site, &site.agent("1.0.0", 1, b"old"), &[]).unwrap();
}

#[test]
fn a_file_with_another_digest_leaves_nothing() {
    let site = Site::new();
    let release = site.agent("1.0.0", 1, b"program");
    site.write(
        &format!("var/lib/hub-agent/{}", release.file.display()),
        b"prOgram",
    );
    let before = site.everything();
    assert_eq!(reason(stage(&site, &release, &[])), Reason::DigestMismatch);
    assert_eq!(site.everything(), before);
}
