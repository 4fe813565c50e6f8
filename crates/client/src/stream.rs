//! Long-lived streams in both directions, which carry a token as calls do.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use futures_util::{Stream, StreamExt, TryStreamExt, stream, stream::BoxStream};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Request, Response, Status, transport::Channel};

use crate::{
    Error, Result,
    call::{Caller, Limits, note, noted},
    login::{Renewal, Token},
    pool::Member,
};

/// Why a stream ended.
pub(crate) enum Broken {
    /// Its token was refused, and there is another one: it may be opened again at once. If that one is of a login just now,
    /// it should not be refused.
    Renewed {
        logged_in: bool,
    },
    Failed(Error),
}

impl From<Error> for Broken {
    fn from(error: Error) -> Broken {
        Broken::Failed(error)
    }
}

pub(crate) type Requests<Q> = Request<UnboundedReceiverStream<Q>>;
pub(crate) type Responses<R> = BoxStream<'static, Result<R, Broken>>;

impl Caller {
    /// Opens a stream to one member. Everything happens while its answers are waited for: servers send their headers
    /// with their first answer, so that opening must not hold up requests.
    ///
    /// With `may_renew` false a refused token is an error like any other, as it was a new one; after the first answer it has
    /// aged.
    pub(crate) fn stream<Q, R, F, S, T>(
        &self,
        member: Arc<Member>,
        receiver: mpsc::UnboundedReceiver<Q>,
        may_renew: bool,
        open: F,
    ) -> Responses<R>
    where
        Q: Send + 'static,
        R: Send + 'static,
        F: FnOnce(Channel, Limits, Requests<Q>) -> S + Send + 'static,
        S: Future<Output = Result<Response<T>, Status>> + Send,
        T: Stream<Item = Result<R, Status>> + Send + 'static,
    {
        let caller = self.clone();
        let with_token = async move {
            let token = caller.token().await?;
            let (opener, used) = (caller.clone(), token.clone());
            let opened = async move {
                let request = opener.request(UnboundedReceiverStream::new(receiver), &used);
                let channel = opener.channel(&member, &used).await?;
                let answers = note(&member, open(channel, opener.limits(), request).await).await?;
                let answers = opener.accept(&member, answers)?;
                Ok::<_, Error>(answers.or_else(move |status| noted(member.clone(), status)))
            };
            let aged = Arc::new(AtomicBool::new(may_renew));
            let ages = Arc::clone(&aged);
            let answers = stream::once(opened).try_flatten().inspect_ok(move |_| ages.store(true, Relaxed));
            let mend = move |error| caller.clone().mend(token.clone(), error, aged.load(Relaxed));
            Ok::<_, Broken>(answers.or_else(mend))
        };
        stream::once(with_token).try_flatten().boxed()
    }

    async fn mend<R>(self, token: Token, error: Error, may_renew: bool) -> Result<R, Broken> {
        let renewal = if may_renew { self.renew(&token, &error).await? } else { Renewal::None };
        Err(match renewal {
            Renewal::None => Broken::Failed(error),
            Renewal::Known => Broken::Renewed { logged_in: false },
            Renewal::LoggedIn => Broken::Renewed { logged_in: true },
        })
    }
}
