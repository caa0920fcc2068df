//! Agents and prompts of the project and the user.

use std::sync::Arc;

use flow_model::tools::{
    AgentRequest, AgentResponse, BriefListing, ListFormat, PromptRequest, PromptResponse,
    WorkflowParameter,
};
use flow_runtime::briefs::{Brief, BriefError, Briefs, Found, Kind};
use flow_runtime::library::Location;
use flow_runtime::value::Value as Given;
use serde_json::{Map, Value};

use super::Server;
use super::tool::{self, Call, LIST, Offer, Refused};
use crate::output::Paint;
use crate::{brief, cli};

pub(super) fn offers() -> Vec<Offer> {
    vec![Offer::new(agent), Offer::new(prompt)]
}

/// What is read of a brief's front matter by others.
const OWN_KEYS: [&str; 5] = ["name", "description", "arguments", "parameters", "inputs"];

impl Server {
    /// The agents or prompts around the directory that is served.
    pub(super) fn briefs(&self, kind: Kind) -> Briefs {
        Briefs::around(kind, &self.directory)
    }
}

/// What came of asking for a brief.
enum Asked {
    /// The list, and how it is written unless that is as JSON.
    List(Vec<BriefListing>, Option<String>),
    Text(Box<Brief>, String),
    Unknown(String),
}

fn asked(
    briefs: &Briefs,
    name: &str,
    parameters: Map<String, Value>,
    format: ListFormat,
    verbose: bool,
) -> Result<Asked, Refused> {
    if name == LIST {
        let found = briefs.list().into_iter();
        let listed = found.map(|found| listing(found, verbose)).collect();
        let format = cli::ListFormat::from(format);
        let is_written = format != cli::ListFormat::Json;
        let written = is_written.then(|| brief::text(briefs, format, verbose, Paint::none(), None));
        return Ok(Asked::List(listed, written));
    }
    let name = tool::meant(name);
    let brief = match briefs.brief(name) {
        Ok(brief) => brief,
        Err(error @ BriefError::NotFound { .. }) => {
            let BriefError::NotFound { available, .. } = &error else {
                return Err(Refused(error.to_string()));
            };
            let known = match available.is_empty() {
                true => "there are none".to_owned(),
                false => format!("available: {}", available.join(", ")),
            };
            return Ok(Asked::Unknown(format!("{error}; {known}")));
        }
        Err(error) => return Ok(Asked::Unknown(error.to_string())),
    };
    let given = Given::from(&Value::Object(parameters));
    match brief.render(&given) {
        Ok(text) => Ok(Asked::Text(Box::new(brief), text)),
        Err(error @ BriefError::Arguments(_)) => {
            let reason = format!("`parameters` of `{name}` do not fit:\n{error}");
            Err(Refused(reason))
        }
        Err(error) => Ok(Asked::Unknown(error.to_string())),
    }
}

fn listing(found: Found, verbose: bool) -> BriefListing {
    let mut listing = BriefListing {
        name: found.name.clone(),
        source: found.place.word().to_owned(),
        ..BriefListing::default()
    };
    if let (true, Location::File(path)) = (verbose, &found.location) {
        listing.path = Some(path.display().to_string());
    }
    match Brief::read(found) {
        Ok(brief) => {
            let arguments = brief.arguments().unwrap_or_default().iter();
            let arguments = arguments.map(|field| WorkflowParameter::of(field, verbose));
            listing.parameters = Some(arguments.collect());
            listing.description = brief.description;
        }
        Err(error) => listing.error = Some(error.to_string()),
    }
    listing
}

async fn agent(
    server: Arc<Server>,
    request: AgentRequest,
    _call: Call,
) -> Result<AgentResponse, Refused> {
    let briefs = server.briefs(Kind::Agent);
    let AgentRequest {
        agent_name,
        parameters,
        format,
        verbose,
    } = request;
    let mut response = AgentResponse {
        success: true,
        ..AgentResponse::default()
    };
    match asked(&briefs, &agent_name, parameters, format, verbose)? {
        Asked::List(agents, listing) => {
            response.agents = Some(agents);
            response.listing = listing;
        }
        Asked::Text(brief, text) => {
            let mut settings = brief.head;
            settings.retain(|key, _| !OWN_KEYS.contains(&key.as_str()));
            response.text = Some(text);
            response.description = brief.description;
            response.settings = Some(settings);
        }
        Asked::Unknown(error) => {
            response.success = false;
            response.error = Some(error);
        }
    }
    response.agent_name = agent_name;
    Ok(response)
}

async fn prompt(
    server: Arc<Server>,
    request: PromptRequest,
    _call: Call,
) -> Result<PromptResponse, Refused> {
    let briefs = server.briefs(Kind::Prompt);
    let PromptRequest {
        prompt_name,
        parameters,
        format,
        verbose,
    } = request;
    let mut response = PromptResponse {
        success: true,
        ..PromptResponse::default()
    };
    match asked(&briefs, &prompt_name, parameters, format, verbose)? {
        Asked::List(prompts, listing) => {
            response.prompts = Some(prompts);
            response.listing = listing;
        }
        Asked::Text(brief, text) => {
            response.text = Some(text);
            response.description = brief.description;
        }
        Asked::Unknown(error) => {
            response.success = false;
            response.error = Some(error);
        }
    }
    response.prompt_name = prompt_name;
    Ok(response)
}
