//! `/feature-gates`: the cluster feature gate for people, as this member sees it.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::{App, Health, answer};

/// Once there are users, it is for those who have logged in.
pub(super) async fn handle<H: Health>(State(app): State<App<H>>, method: Method, headers: HeaderMap) -> Response {
    if method != Method::GET {
        return answer::method_not_allowed();
    }
    let kind = HeaderValue::from_static("application/json; charset=utf-8");
    match app.health.feature_gates(&headers).await {
        Ok(page) => ([(header::CONTENT_TYPE, kind)], page + "\n").into_response(),
        Err(why) => answer::error(StatusCode::UNAUTHORIZED, &format!("{why}: send a token as Authorization")),
    }
}
