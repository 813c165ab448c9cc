//! The words of notices. Names come from tenants and their devices: they are quoted, shortened, and
//! never more than text.

use super::NoticeType;
use super::conditions::is_loss;
use super::dependency_track::is_refusal;
use super::incidents::Incident;
use super::support::has_ended;

/// Names that a notice of many incidents lists.
const MAX_LISTED: usize = 10;

/// Title and body of a notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    pub title: String,
    pub body: String,
}

/// The words for one incident.
pub fn single(notice_type: NoticeType, incident: &Incident) -> Words {
    let name = &incident.name;
    let title = match notice_type {
        NoticeType::HubOffline => format!("Hub {name} is offline"),
        NoticeType::HubOnline => format!("Hub {name} is back online"),
        NoticeType::HubBlind => format!("Hub {name} receives no advertisements"),
        NoticeType::JobFailed => format!("A job of hub {name} failed"),
        NoticeType::RolloutHalted => format!("The rollout of {name} was halted"),
        NoticeType::DeviceSilent => format!("Device {name} is silent"),
        NoticeType::DeviceBatteryLow => format!("The battery of device {name} is low"),
        NoticeType::DeviceThreshold => format!("A value of device {name} is out of range"),
        NoticeType::PipelineFailing if is_loss(&incident.subject) => {
            format!("Pipeline {name} has lost events")
        }
        NoticeType::PipelineFailing => format!("Pipeline {name} is failing"),
        NoticeType::ConsentWithdrawn => format!("{name} withdrew their consent"),
        NoticeType::CertificateExpiring => format!("The certificate of hub {name} expires soon"),
        NoticeType::HubCloned => format!("Hub {name} may be cloned"),
        NoticeType::HubFlooding => format!("Hub {name} exceeds its upload limit"),
        NoticeType::HubCredentialsExpiring => format!("The credentials of hub {name} are expiring"),
        NoticeType::ApiKeyExpiring => format!("The API key {name} expires soon"),
        NoticeType::VulnerabilityFound => format!("{name} affects what hubs run"),
        NoticeType::SupportEnding if has_ended(&incident.subject) => {
            format!("The support of {name} has ended")
        }
        NoticeType::SupportEnding => format!("The support of {name} ends soon"),
        NoticeType::DependencyTrackFailing if is_refusal(&incident.subject) => {
            format!("Dependency-Track refuses documents of project {name}")
        }
        NoticeType::DependencyTrackFailing => {
            format!("Dependency-Track fails for project {name}")
        }
    };
    Words {
        title,
        body: incident.detail.clone(),
    }
}

/// The words for many incidents that are raised at the same moment.
pub fn summary(notice_type: NoticeType, incidents: &[&Incident]) -> Words {
    let count = incidents.len();
    let title = match notice_type {
        NoticeType::HubOffline => format!("{count} hubs are offline"),
        NoticeType::HubOnline => format!("{count} hubs are back online"),
        NoticeType::HubBlind => format!("{count} hubs receive no advertisements"),
        NoticeType::JobFailed => format!("{count} jobs failed"),
        NoticeType::RolloutHalted => format!("{count} rollouts were halted"),
        NoticeType::DeviceSilent => format!("{count} devices are silent"),
        NoticeType::DeviceBatteryLow => format!("The batteries of {count} devices are low"),
        NoticeType::DeviceThreshold => format!("Values of {count} devices are out of range"),
        NoticeType::PipelineFailing
            if incidents.iter().any(|incident| is_loss(&incident.subject)) =>
        {
            format!("{count} pipelines are failing or have lost events")
        }
        NoticeType::PipelineFailing => format!("{count} pipelines are failing"),
        NoticeType::ConsentWithdrawn => format!("{count} users withdrew their consent"),
        NoticeType::CertificateExpiring => format!("The certificates of {count} hubs expire soon"),
        NoticeType::HubCloned => format!("{count} hubs may be cloned"),
        NoticeType::HubFlooding => format!("{count} hubs exceed their upload limit"),
        NoticeType::HubCredentialsExpiring => {
            format!("The credentials of {count} hubs are expiring")
        }
        NoticeType::ApiKeyExpiring => format!("{count} API keys expire soon"),
        NoticeType::VulnerabilityFound => format!("{count} vulnerabilities affect what hubs run"),
        NoticeType::SupportEnding => format!("The support of {count} products ends or has ended"),
        NoticeType::DependencyTrackFailing => {
            format!("{count} servers of Dependency-Track are failing")
        }
    };
    let mut names: Vec<&str> = incidents
        .iter()
        .map(|incident| incident.name.as_str())
        .collect();
    names.sort_unstable();
    let listed = names
        .get(..MAX_LISTED.min(count))
        .unwrap_or_default()
        .join(", ");
    let body = match count.saturating_sub(MAX_LISTED) {
        0 => format!("{listed}."),
        more => format!("{listed}, and {more} more."),
    };
    Words { title, body }
}

/// A name on one line, short enough for a title.
pub fn name_of(name: Option<&str>, otherwise: &str) -> String {
    const MAX_CHARS: usize = 80;
    let name = name
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .unwrap_or(otherwise);
    let line: String = name
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(MAX_CHARS)
        .collect();
    match name.chars().count() > MAX_CHARS {
        true => format!("{line}…"),
        false => line,
    }
}

#[cfg(test)]
mod tests {
    use hub_protocol::Timestamp;

    use super::*;

    fn incident(name: &str) -> Incident {
        Incident {
            subject: name.to_owned(),
            name: name.to_owned(),
            detail: "Since noon.".to_owned(),
            hub_uuid: None,
            device_instance_id: None,
            opened_at: Timestamp::from_micros(0),
            raised_at: None,
            over_at: None,
            closed_at: None,
        }
    }

    #[test]
    fn many_incidents_are_listed_in_part() {
        let incidents: Vec<Incident> = (0..12)
            .map(|number| incident(&format!("hub-{number:02}")))
            .collect();
        let incidents: Vec<&Incident> = incidents.iter().collect();
        let words = summary(NoticeType::HubOffline, &incidents);
        assert_eq!(words.title, "12 hubs are offline");
        assert!(
            words.body.starts_with("hub-00, hub-01") && words.body.ends_with("hub-09, and 2 more."),
            "{words:?}"
        );
        let words = summary(NoticeType::HubOffline, &incidents[..2]);
        assert_eq!(words.body, "hub-00, hub-01.");
    }

    #[test]
    fn names_stay_on_one_line() {
        assert_eq!(name_of(Some("a\nb"), "x"), "a b");
        assert_eq!(name_of(Some("  "), "x"), "x");
        assert_eq!(name_of(Some(&"ä".repeat(100)), "x").chars().count(), 81);
    }
}
