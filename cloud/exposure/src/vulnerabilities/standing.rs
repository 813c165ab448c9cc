//! How a hub stands to a vulnerability that affects a package of it, or a component of a release
//! that it runs: statements decide, those of the tenant before those of makers of releases.

use hub_protocol::ReleaseUuid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::statements::{Statement, VexStatus};

/// How a hub stands to a vulnerability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Standing {
    /// It has an affected package.
    Exposed,
    /// It has, and the tenant states that it is not affected.
    NotAffected,
    /// It had one and has none any more; or it has, and the tenant states that it is fixed.
    Fixed,
    /// It is exposed, and a job that installs a release is open.
    Updating,
}

/// Where a hub has what a vulnerability affects.
#[derive(Clone, Copy, Debug, Default)]
pub struct Affected<'a> {
    /// Whether a package of the machine is affected.
    pub machine: bool,
    /// The releases on it with an affected component.
    pub releases: &'a [ReleaseUuid],
}

/// The standing of a hub that has an affected package, and the statement that decides it. The
/// tenant's own come first: one about a release that the hub runs, then one about all hubs. Without
/// one, each affected release is as its maker states, and the worst of what is affected counts.
pub fn standing<'a>(
    stated: &Stated<'a>,
    running: &[ReleaseUuid],
    affected: Affected<'_>,
    is_updating: bool,
) -> (Standing, Option<&'a Statement>) {
    let of_release = stated.own.iter().find(|statement| {
        statement
            .release_uuid
            .is_some_and(|release| running.contains(&release))
    });
    let of_all = || {
        stated
            .own
            .iter()
            .find(|statement| statement.release_uuid.is_none())
    };
    let statement = match of_release.or_else(of_all) {
        Some(statement) => Some(statement),
        None => of_makers(stated.makers, affected),
    };
    let standing = match statement.map(|statement| statement.status) {
        Some(VexStatus::NotAffected) => Standing::NotAffected,
        Some(VexStatus::Fixed) => Standing::Fixed,
        Some(VexStatus::Affected | VexStatus::UnderInvestigation) | None if is_updating => {
            Standing::Updating
        }
        Some(VexStatus::Affected | VexStatus::UnderInvestigation) | None => Standing::Exposed,
    };
    (standing, statement)
}

/// What is stated about one vulnerability.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stated<'a> {
    /// By the tenant.
    pub own: &'a [Statement],
    /// By the makers of releases, each about its own.
    pub makers: &'a [Statement],
}

/// The statement of a maker that decides: of all that is affected, the worst.
fn of_makers<'a>(makers: &'a [Statement], affected: Affected<'_>) -> Option<&'a Statement> {
    if affected.machine {
        return None;
    }
    let mut worst: Option<&Statement> = None;
    for release in affected.releases {
        let statement = makers
            .iter()
            .find(|statement| statement.release_uuid == Some(*release))?;
        let rank = |statement: &Statement| match statement.status {
            VexStatus::Affected => 3,
            VexStatus::UnderInvestigation => 2,
            VexStatus::NotAffected => 1,
            VexStatus::Fixed => 0,
        };
        if worst.is_none_or(|worst| rank(statement) > rank(worst)) {
            worst = Some(statement);
        }
    }
    worst
}

#[cfg(test)]
mod tests {
    use hub_protocol::Timestamp;
    use uuid::Uuid;

    use super::*;

    fn statement(release: Option<ReleaseUuid>, status: VexStatus) -> Statement {
        Statement {
            vulnerability_id: "CVE-2024-1".to_owned(),
            release_uuid: release,
            status,
            justification: None,
            impact: None,
            action: None,
            author: "API_KEY:7".to_owned(),
            updated_at: Timestamp::from_micros(0),
        }
    }

    #[test]
    fn statement_about_a_release_comes_before_one_about_all() {
        let release = ReleaseUuid(Uuid::from_u128(7));
        let all = statement(None, VexStatus::NotAffected);
        let own = statement(Some(release), VexStatus::Affected);
        let machine = Affected {
            machine: true,
            releases: &[],
        };
        let of = |own: &[Statement], releases: &[ReleaseUuid], is_updating| {
            let stated = Stated { own, makers: &[] };
            standing(&stated, releases, machine, is_updating).0
        };
        let both = [all.clone(), own.clone()];
        assert_eq!(of(&both, &[release], false), Standing::Exposed);
        assert_eq!(of(&both, &[release], true), Standing::Updating);
        assert_eq!(of(&both, &[], true), Standing::NotAffected);
        assert_eq!(of(&[own], &[], false), Standing::Exposed);
        let fixed = statement(None, VexStatus::Fixed);
        assert_eq!(of(&[fixed], &[], true), Standing::Fixed);
        assert_eq!(of(&[], &[], true), Standing::Updating);
    }

    #[test]
    fn statement_of_a_maker_is_about_its_release_alone() {
        let (one, other) = (
            ReleaseUuid(Uuid::from_u128(1)),
            ReleaseUuid(Uuid::from_u128(2)),
        );
        let makers = [
            statement(Some(one), VexStatus::NotAffected),
            statement(Some(other), VexStatus::Affected),
        ];
        let own = [statement(None, VexStatus::Fixed)];
        let of = |own: &[Statement], machine: bool, releases: &[ReleaseUuid]| {
            let stated = Stated {
                own,
                makers: &makers,
            };
            standing(&stated, releases, Affected { machine, releases }, false).0
        };
        assert_eq!(of(&[], false, &[one]), Standing::NotAffected);
        assert_eq!(of(&[], true, &[one]), Standing::Exposed);
        assert_eq!(of(&[], false, &[one, other]), Standing::Exposed);
        let third = ReleaseUuid(Uuid::from_u128(3));
        assert_eq!(of(&[], false, &[one, third]), Standing::Exposed);
        assert_eq!(of(&own, true, &[other]), Standing::Fixed);
    }
}
