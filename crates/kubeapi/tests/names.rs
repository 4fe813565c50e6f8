//! The name of the caller: in the query of every write, and in a header of every request.
#![allow(clippy::unwrap_used, reason = "a test reports the line of a failed unwrap")]

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use http::{Request, Response, StatusCode};
use http_body_util::Full;
use kube::client::Body;
use kubeapi::{ApiError, Kube, Place};
use serde_json::{Value, json};

type Seen = Arc<Mutex<Vec<String>>>;

/// An API that accepts every request, and the requests that it has received.
fn api(status: StatusCode, answer: Value) -> (Kube, Seen) {
    let seen = Seen::default();
    let kept = seen.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let agent = request.headers().get("user-agent").and_then(|agent| agent.to_str().ok()).unwrap_or("nobody");
        let agent = agent.split('/').next().unwrap_or_default();
        kept.lock().unwrap().push(format!("{} {} by {agent}", request.method(), request.uri()));
        let mut response = Response::new(Full::from(answer.to_string()));
        *response.status_mut() = status;
        async move { Ok::<_, Infallible>(response) }
    });
    (kube::Client::new(service, "default").into(), seen)
}

async fn all_verbs(kube: &Kube) -> Result<(), ApiError> {
    let place = Place::cluster("/apis/g/v1", "things");
    let object = json!({"metadata": {"name": "a"}});
    kube.get(&place, "a").await?;
    kube.list(&place, None).await?;
    kube.create(&place, &object).await?;
    kube.update(&place, &object).await?;
    kube.update_status(&place, &object).await?;
    kube.apply(&place, &object, "other", true).await?;
    kube.delete(&place, "a", "u", "1").await?;
    drop(kube.watch(&place, None, None).await?);
    Ok(())
}

#[tokio::test]
async fn every_request_names_the_caller() {
    let (kube, seen) = api(StatusCode::OK, json!({"items": []}));
    all_verbs(&kube.named("me & co")).await.unwrap();
    let watched = "?watch=true&allowWatchBookmarks=true&timeoutSeconds=240";
    let want = [
        "GET /apis/g/v1/things/a by me & co".to_owned(),
        "GET /apis/g/v1/things by me & co".to_owned(),
        "POST /apis/g/v1/things?fieldManager=me%20%26%20co by me & co".to_owned(),
        "PUT /apis/g/v1/things/a?fieldManager=me%20%26%20co by me & co".to_owned(),
        "PUT /apis/g/v1/things/a/status?fieldManager=me%20%26%20co by me & co".to_owned(),
        // An apply may name another field manager.
        "PATCH /apis/g/v1/things/a?fieldManager=other&force=true by me & co".to_owned(),
        "DELETE /apis/g/v1/things/a by me & co".to_owned(),
        format!("GET /apis/g/v1/things{watched} by me & co"),
    ];
    assert_eq!(*seen.lock().unwrap(), want);
}

#[tokio::test]
async fn without_a_name_no_header_is_sent() {
    let (kube, seen) = api(StatusCode::OK, json!({"items": []}));
    all_verbs(&kube).await.unwrap();
    let said = seen.lock().unwrap().clone();
    assert!(said.iter().all(|line| !line.contains("fieldManager=me") && line.ends_with("by nobody")), "{said:?}");
}

/// If any reply counted as an empty list, the audit trail would seem to be deleted.
#[tokio::test]
async fn a_reply_without_items_is_an_error() {
    let place = Place::cluster("/apis/g/v1", "things");
    let list =
        async |answer: Value| api(StatusCode::OK, answer).0.list(&place, None).await.map_err(|error| error.to_string());
    for empty in
        [json!({"kind": "ThingList", "items": []}), json!({"kind": "ThingList", "items": null}), json!({"items": []})]
    {
        assert_eq!(list(empty).await, Ok(Vec::new()));
    }
    assert_eq!(list(json!({"items": [3, {}]})).await.map(|items| items.len()), Ok(2), "items are not validated");
    for odd in [json!({}), json!({"kind": "Thing"}), json!({"kind": "ThingList", "items": {}}), json!([])] {
        let why = "GET /apis/g/v1/things was answered with something that is no list";
        assert_eq!(list(odd).await, Err(why.to_owned()));
    }
}

/// The message is printed once, also by callers that print the whole chain of errors.
#[tokio::test]
async fn a_refusal_is_printed_once_in_the_words_of_the_api() {
    let status =
        json!({"kind": "Status", "status": "Failure", "message": "no such thing", "reason": "Invalid", "code": 422});
    let (kube, _) = api(StatusCode::UNPROCESSABLE_ENTITY, status);
    let error = kube.get(&Place::cluster("/apis/g/v1", "things"), "a").await.unwrap_err();
    assert_eq!(error.to_string(), "GET /apis/g/v1/things/a failed: no such thing");
    assert!(std::error::Error::source(&error).is_none());
    let error = Kube::from(nobody()).get(&Place::cluster("/apis/g/v1", "things"), "a").await.unwrap_err().to_string();
    assert!(error.contains("nobody is there") && error.matches("nobody is there").count() == 1, "{error}");
}

fn nobody() -> kube::Client {
    let service = tower::service_fn(|_: Request<Body>| async {
        Err::<Response<Full<_>>, _>(std::io::Error::other("nobody is there"))
    });
    kube::Client::new(service, "default")
}
