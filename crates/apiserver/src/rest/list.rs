//! Many objects, as of one revision, in pages.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{
    Api, Call,
    options::{self, ListOptions, Start},
    present,
    shown::{self, Shown, Wanted},
};
use crate::{
    resource::Resource,
    route::Target,
    selector::Selector,
    serve::{accept::Form, answer},
    status::{Result, Status},
    token::{INCONSISTENT, Token},
};

/// Keys that are read at once when a selector may leave most of them out.
const SELECT_KEYS: i64 = 500;

const CONTINUE_EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. You can start a \
    new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the \
    results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or \
    deleted between the time the first chunk was returned and now may show up in the list.";

/// Objects of a list, and what its metadata says.
pub(super) struct Listed {
    objects: Vec<Shown>,
    pub revision: i64,
    next: Option<Token>,
    /// How many objects follow; unknown where a selector decides.
    left: Option<i64>,
}

impl Listed {
    /// The objects, if they were wanted as trees.
    pub(super) fn trees(self) -> Vec<Value> {
        self.objects.into_iter().filter_map(Shown::into_tree).collect()
    }

    pub(super) fn metadata(&self) -> Value {
        let mut metadata = json!({"resourceVersion": self.revision.to_string()});
        if let Some(next) = &self.next {
            metadata["continue"] = next.encode().into();
            if let Some(left) = self.left.filter(|left| *left > 0) {
                metadata["remainingItemCount"] = left.into();
            }
        }
        metadata
    }

    pub(super) fn shown(self) -> Vec<Shown> {
        self.objects
    }
}

impl Api {
    pub(crate) async fn list(&self, target: &Target, call: &Call) -> Result<Bytes> {
        let resource = self.resource(target)?;
        let selector = self.selector(&resource, call)?;
        let options = options::list(&call.query)?;
        let wanted = wanted(call.form, &selector);
        let mut listed = self.listed(&resource, target.namespace.as_deref(), &selector, &options, wanted).await?;
        let mut metadata = listed.metadata();
        if call.form == Form::Object {
            present::end(&resource, &mut metadata);
            // Kubernetes knows by its types what items of built-in kinds are, and does not say it again.
            if resource.custom().is_none() {
                listed.objects.iter_mut().for_each(Shown::untype);
            }
            return Ok(shown::list(&resource, &listed.objects, &metadata));
        }
        present::many(&resource, listed.trees(), metadata, call).map(|list| answer::print(&list))
    }

    /// Which objects a request is about.
    pub(super) fn selector(&self, resource: &Resource, call: &Call) -> Result<Selector> {
        let (labels, fields) = (call.query.get("labelSelector"), call.query.get("fieldSelector"));
        Selector::parse(labels, fields, &|field| resource.check_selectable(field))
    }

    /// All objects that are there now.
    pub(super) async fn state(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        selector: &Selector,
        at_least: i64,
        wanted: Wanted,
    ) -> Result<Listed> {
        let options = ListOptions { start: Start::Newest { at_least }, limit: 0 };
        self.listed(resource, namespace, selector, &options, wanted).await
    }

    pub(super) async fn listed(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        selector: &Selector,
        options: &ListOptions,
        wanted: Wanted,
    ) -> Result<Listed> {
        let prefix = resource.prefix_in(namespace);
        let (revision, start) = match &options.start {
            Start::Newest { at_least } => {
                self.not_older_than(*at_least).await?;
                (0, None)
            }
            Start::Exact(revision) => {
                self.not_older_than(*revision).await?;
                (*revision, None)
            }
            Start::Continue(token) => (token.revision.max(0), Some(format!("{}{}", resource.prefix(), token.start))),
        };
        if let Some(start) = start.as_ref().filter(|start| !start.starts_with(&prefix)) {
            return Err(Status::bad_request(format!("continue key {start:?} is not in the list it is used for")));
        }
        if let (Some(name), true) = (selector.name(), namespace.is_some() || !resource.namespaced) {
            let page = self.store.one(&format!("{prefix}{name}"), revision).await?;
            let objects = self.show_all(resource, &page.entries, wanted).await?;
            return Ok(collect(objects, page.revision, selector));
        }
        let pages = self.pages(resource, &prefix, start, revision, (selector, wanted), options.limit).await;
        pages.map_err(|refused| expired(refused, options))
    }

    async fn pages(
        &self,
        resource: &Resource,
        prefix: &str,
        mut start: Option<String>,
        mut revision: i64,
        (selector, wanted): (&Selector, Wanted),
        limit: i64,
    ) -> Result<Listed> {
        let mut objects = Vec::new();
        loop {
            let missing = limit - objects.len() as i64;
            // With a selector more is read than wanted; a page ends where enough is found.
            let keys = if limit == 0 {
                0
            } else if selector.is_empty() {
                missing
            } else {
                missing.max(SELECT_KEYS)
            };
            let page = self.store.list(prefix, start.as_deref(), keys, revision).await?;
            revision = page.revision;
            let count = page.entries.len() as i64;
            let read = self.show_all(resource, &page.entries, wanted).await?;
            for (index, (entry, object)) in page.entries.iter().zip(read).enumerate() {
                if object.is_selected(selector) {
                    objects.push(object);
                }
                let last = index + 1 == page.entries.len();
                if limit > 0 && objects.len() as i64 == limit && (!last || page.more) {
                    let next = format!("{}\0", entry.key.strip_prefix(&resource.prefix()).unwrap_or_default());
                    let left = selector.is_empty().then_some(page.count - index as i64 - 1);
                    return Ok(Listed { objects, revision, next: Some(Token { revision, start: next }), left });
                }
            }
            if !page.more || count == 0 {
                return Ok(Listed { objects, revision, next: None, left: None });
            }
            start = page.entries.last().map(|entry| format!("{}\0", entry.key));
        }
    }
}

/// Tables look into objects, and so do selectors of other fields than every object has.
pub(super) fn wanted(form: Form, selector: &Selector) -> Wanted {
    if form == Form::Object && selector.is_of_head() { Wanted::Text } else { Wanted::Trees }
}

fn collect(mut objects: Vec<Shown>, revision: i64, selector: &Selector) -> Listed {
    objects.retain(|object| object.is_selected(selector));
    Listed { objects, revision, next: None, left: None }
}

/// A page whose revision is compacted comes with a token to go on at the newest state.
fn expired(mut refused: Box<Status>, options: &ListOptions) -> Box<Status> {
    if let (410, Start::Continue(token)) = (refused.code, &options.start) {
        refused.message = CONTINUE_EXPIRED.to_owned();
        refused.next = Some(Token { revision: INCONSISTENT, start: token.start.clone() }.encode());
    }
    refused
}
