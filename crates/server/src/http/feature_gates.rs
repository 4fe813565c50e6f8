//! `/feature-gates`: the cluster feature gate for people, as this member sees it.

use axum::extract::State;
use axum::http::{HeaderValue, Method, header};
use axum::response::{IntoResponse, Response};

use super::{App, Health, answer};

pub async fn handle<H: Health>(State(app): State<App<H>>, method: Method) -> Response {
    if method != Method::GET {
        return answer::method_not_allowed();
    }
    let kind = HeaderValue::from_static("application/json; charset=utf-8");
    ([(header::CONTENT_TYPE, kind)], app.health.feature_gates() + "\n").into_response()
}
