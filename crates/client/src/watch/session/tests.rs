//! Responses in the orders in which servers may send them.

use proto::{
    etcdserverpb::ResponseHeader,
    mvccpb::{Event, KeyValue},
};

use super::*;
use crate::{Client, ConnectOptions};

type Answers = mpsc::UnboundedReceiver<Result<WatchResponse, Canceled>>;

/// A session with an open stream to a member whose responses the test makes up.
struct Scene {
    session: Session,
    requests: Requests,
    sent: mpsc::UnboundedReceiver<WatchRequest>,
}

impl Scene {
    async fn new() -> Scene {
        let client = Client::connect(["127.0.0.1:1"], ConnectOptions::new()).await.unwrap();
        let (_, commands) = mpsc::unbounded_channel();
        let (requests, sent) = mpsc::unbounded_channel();
        Scene { session: Session::new(client.caller, commands), requests, sent }
    }

    fn create(&mut self, watch_id: i64, start_revision: i64) -> Answers {
        let (sender, answers) = mpsc::unbounded_channel();
        let request = WatchCreateRequest { watch_id, start_revision, ..Default::default() };
        self.session.obey(Command::Create { request, sender }, Some(&self.requests));
        answers
    }

    fn request_progress(&mut self) {
        self.session.obey(Command::Progress, Some(&self.requests));
    }

    fn created(&mut self, watch_id: i64, revision: i64) {
        self.respond(WatchResponse { created: true, ..response(watch_id, revision) });
    }

    fn progress(&mut self, revision: i64) {
        self.respond(response(NO_WATCH, revision));
    }

    fn events(&mut self, watch_id: i64, revision: i64, events: &[i64]) {
        let kv = |&mod_revision| Some(KeyValue { mod_revision, ..Default::default() });
        let events = events.iter().map(|revision| Event { kv: kv(revision), ..Default::default() }).collect();
        self.respond(WatchResponse { events, ..response(watch_id, revision) });
    }

    fn respond(&mut self, response: WatchResponse) {
        self.session.handle_response(response, &self.requests);
    }

    /// The revision from which the watch would resume.
    fn next(&self, watch_id: i64) -> i64 {
        self.session.watches[&watch_id].request.start_revision
    }
}

fn response(watch_id: i64, revision: i64) -> WatchResponse {
    let header = Some(ResponseHeader { revision, ..Default::default() });
    WatchResponse { header, watch_id, ..Default::default() }
}

/// The revisions that were handed to the owner of a watch: of each event, or `-revision` for a notification of progress.
fn taken(answers: &mut Answers) -> Vec<i64> {
    let mut taken = Vec::new();
    while let Ok(answer) = answers.try_recv() {
        let answer = answer.unwrap();
        taken.extend(answer.events.iter().map(|event| event.kv.as_ref().unwrap().mod_revision));
        taken.extend(answer.events.is_empty().then(|| -revision(&answer)));
    }
    taken
}

/// Real etcd sends confirmations and notifications of progress through two queues.
#[tokio::test]
async fn progress_from_before_a_watch_skips_none_of_its_history() {
    let mut scene = Scene::new().await;
    let mut first = scene.create(1, 0);
    scene.created(1, 100);
    scene.request_progress();
    let mut second = scene.create(2, 5);
    scene.created(2, 100);
    // The answer to the request that was sent before the second watch.
    scene.progress(100);
    assert_eq!((taken(&mut first), taken(&mut second)), (vec![-100], vec![]));
    assert_eq!((scene.next(1), scene.next(2)), (101, 5), "a resumed watch reads its history");
    scene.events(2, 100, &[5, 6, 70]);
    assert_eq!((taken(&mut second), scene.next(2)), (vec![5, 6, 70], 71));
}

#[tokio::test]
async fn progress_reaches_every_watch_that_it_holds_for() {
    let mut scene = Scene::new().await;
    scene.request_progress();
    let mut past = scene.create(1, 5);
    scene.request_progress();
    let (mut now, mut unconfirmed) = (scene.create(2, 0), scene.create(3, 5));
    scene.created(1, 100);
    scene.created(2, 100);
    // The member ignored the first request, which the client cannot know.
    scene.progress(100);
    assert_eq!(
        (taken(&mut past), taken(&mut now)),
        (vec![], vec![-100]),
        "nothing is left of the second one's history"
    );
    scene.request_progress();
    scene.progress(100);
    assert_eq!(taken(&mut past), [-100], "this answers the second request or a later one");
    // The store has moved on since the watches were confirmed.
    scene.progress(101);
    assert_eq!((taken(&mut past), taken(&mut now)), (vec![-101], vec![-100, -101]));
    assert_eq!((taken(&mut unconfirmed), scene.next(3)), (vec![], 5));
}

/// A server that confirms a watch later than it starts it may name a revision that is too new.
#[tokio::test]
async fn an_event_at_the_confirmed_revision_is_handed_on() {
    let mut scene = Scene::new().await;
    let mut answers = scene.create(1, 0);
    scene.created(1, 7);
    scene.events(1, 7, &[7]);
    scene.events(1, 8, &[8]);
    assert_eq!((taken(&mut answers), scene.next(1)), (vec![7, 8], 9));
    assert!(scene.sent.try_recv().is_ok());
}
