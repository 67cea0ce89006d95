//! The tokens of a tenant, for its admin.

use super::problem::Problem;
use super::request::ApiRequest;
use super::respond::{self, List};
use super::server::ApiServer;
use axum::response::Response;
use schemars::JsonSchema;
use semel_core::policy::duration;
use semel_ledger::tokens::{AccessScope, StoredToken, TokenRequest};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Debug, Serialize, JsonSchema)]
pub struct TokenListed {
    id: String,
    scope: ScopeWord,
    tenant: String,
    name: Option<String>,
    created_at: String,
    expires_at: Option<String>,
}

/// A token that was just made.
#[derive(Serialize, JsonSchema)]
pub struct TokenMade {
    #[serde(flatten)]
    listed: TokenListed,
    /// Told once, kept nowhere.
    token: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScopeWord {
    Agent,
    Operator,
    Admin,
}

impl From<AccessScope> for ScopeWord {
    fn from(scope: AccessScope) -> ScopeWord {
        match scope {
            AccessScope::Agent => ScopeWord::Agent,
            AccessScope::Operator => ScopeWord::Operator,
            AccessScope::Admin => ScopeWord::Admin,
        }
    }
}

impl From<ScopeWord> for AccessScope {
    fn from(word: ScopeWord) -> AccessScope {
        match word {
            ScopeWord::Agent => AccessScope::Agent,
            ScopeWord::Operator => AccessScope::Operator,
            ScopeWord::Admin => AccessScope::Admin,
        }
    }
}

impl TokenListed {
    fn of(id: &str, kept: &StoredToken) -> TokenListed {
        TokenListed {
            id: id.to_owned(),
            scope: kept.scope.into(),
            tenant: kept.tenant.clone(),
            name: kept.name.clone(),
            created_at: kept.created_at.to_string(),
            expires_at: kept.expires_at.map(|at| at.to_string()),
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct NewTokenForm {
    scope: ScopeWord,
    /// Whom it is for. Tokens of one name are one principal.
    #[schemars(regex(pattern = r"^[A-Za-z0-9_.-]{1,64}$"))]
    name: Option<String>,
    /// How long it works; until it is revoked unless given.
    #[schemars(regex(pattern = r"^[1-9][0-9]{0,2}(s|m|h|d)$"))]
    expires: Option<String>,
}

pub async fn list(api: Arc<ApiServer>, request: ApiRequest) -> Result<Response, Problem> {
    let tokens = api.gate()?.ledger.tokens().await?;
    let ours = tokens.0.iter().filter(|(_, kept)| kept.tenant == request.who.tenant);
    respond::json(&List::of(ours.map(|(id, kept)| TokenListed::of(id, kept)).collect(), None))
}

pub async fn make(api: Arc<ApiServer>, request: ApiRequest) -> Result<Response, Problem> {
    let (who, _, _, form) = request.json::<NewTokenForm>().await?;
    let gate = api.gate()?;
    let now = gate.clock.now();
    let expires = form.expires.as_deref().map(duration::parse).transpose();
    let expires = expires.map_err(|error| Problem::bad(format!("expires: {error}")))?;
    let expires_at = expires.map(|span| now.plus(span));
    // The tenant is the token's own, whatever anybody says.
    let new = TokenRequest::new(&who.tenant, form.scope.into(), form.name.as_deref(), expires_at);
    let made = gate.ledger.make_token(&new.map_err(|error| Problem::bad(error.to_string()))?, now).await?;
    respond::json(&TokenMade { listed: TokenListed::of(&made.id, &made.kept), token: made.text })
}

pub async fn revoke(api: Arc<ApiServer>, request: ApiRequest) -> Result<Response, Problem> {
    let gate = api.gate()?;
    let id = request.param("id");
    let revoked = gate.ledger.revoke_token(id, Some(&request.who.tenant), gate.clock.now()).await?;
    let kept = revoked.ok_or_else(|| Problem::not_found("such token"))?;
    respond::json(&TokenListed::of(id, &kept))
}
