//! Questions, which are read like objects to be created and answered at once.

use serde_json::Value;

use super::{
    Call,
    admit::{self, Scope},
    own::{self, Author, Change},
    present,
    strict::{self, Form},
    views::Views,
};
use crate::{
    reviews::Review,
    serve::{answer::Warnings, metrics::Metrics},
    status::Result,
};

/// The answer. It has its managers, as all that is created in Kubernetes has.
pub(crate) fn review(review: Review, call: &Call, metrics: &Metrics, warnings: &mut Warnings) -> Result<Value> {
    let (manager, resource) = (own::creator(call)?, review.resource());
    let mut decoded = admit::body(&resource, Scope::Main, call)?;
    let api_version = resource.api_version();
    let kind = admit::kind(&resource, &api_version, Scope::Main);
    let unknown = admit::prune(&resource, &mut decoded.value);
    strict::check(&kind, &Form::Whole(&decoded.twice), &unknown, call.query.field_validation()?, warnings)?;
    let mut asked = decoded.value;
    asked.as_object_mut().map(|asked| asked.remove("status"));
    own::complete(&resource, &mut asked);
    let views = Views::new(&resource);
    let author = Author::new(&resource, Scope::Main, &manager, &views, &metrics.gating);
    let claims = author.given(None, &asked);
    author.record(&Change { raw: None, old: None, hub: None, kept: None }, &mut asked, claims);
    present::shown(&[], review.answer(&call.user, asked)?, call)
}
