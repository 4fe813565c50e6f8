//! All services and pages of the client ports, and the layers around them.

use std::sync::Arc;

use axum::Router;
use proto::{
    etcdserverpb::{
        auth_server::AuthServer, cluster_server::ClusterServer, kv_server::KvServer, lease_server::LeaseServer,
        maintenance_server::MaintenanceServer,
    },
    v3electionpb::election_server::ElectionServer,
    v3lockpb::lock_server::LockServer,
};
use tower::Layer;

use crate::{
    config::Config,
    front::{Front, Kv},
    gateway,
    health::HealthOf,
    http,
    metrics::{
        Metrics,
        grpc::{GrpcLayer, Guard},
    },
    required::RequireLayer,
    services::{
        AuthService, ClusterService, Context, ElectionService, Known, KvService, LeaseService, LockService,
        MaintenanceService, WatchService,
        hot::{HotKv, HotWatch},
    },
};

pub(crate) struct Routes {
    kv: Kv,
    /// All services, KV too: for the gateway, and for gRPC over HTTP/1.
    grpc: Router,
    /// Pages for people and probes, and the JSON gateway.
    pages: Router,
    access: http::Access,
}

impl Routes {
    pub(crate) fn new(context: &Context, config: &Config, metrics: &Arc<Metrics>) -> Routes {
        let (counts, requires) =
            (GrpcLayer::new(metrics.grpc.clone(), guard(context)), RequireLayer::new(context.clone()));
        let kv = counts.layer(requires.layer(Known::new(kv(context))));
        // As one layer, because the router boxes what each gives.
        let both = tower::layer::layer_fn(move |route| counts.layer(requires.layer(route)));
        let grpc = services(context).layer(both);
        let pages = http::routes(Arc::new(HealthOf(context.clone())), metrics.clone());
        let pages = if config.enable_grpc_gateway {
            let limits = gateway::Limits::for_messages(context.message_bytes_max());
            pages.merge(gateway::router(grpc.clone(), limits))
        } else {
            pages
        };
        Routes { kv, grpc, pages, access: http::Access::of(config) }
    }

    /// What a port for clients serves; the pages may have ports of their own.
    pub(crate) fn clients(&self, with_pages: bool) -> Front {
        let grpc = self.grpc.clone();
        let all = if with_pages { grpc.clone().merge(self.pages.clone()) } else { grpc.clone() };
        let all = self.access.clone().wrap(all.fallback(crate::fallback::answer));
        Front::new(self.kv.clone(), grpc.fallback(crate::fallback::answer), all)
    }

    /// What a port for pages alone serves.
    pub(crate) fn pages(&self) -> Front {
        Front::pages(http::finish(self.pages.clone(), self.access.clone()))
    }
}

macro_rules! service {
    ($server:ident, $context:expr, $service:expr) => {
        $server::new($service).max_decoding_message_size($context.message_bytes_max())
    };
}

// Answers are not compressed: no client needs that, and on a fast network it costs more than it saves. Requests are
// unpacked by the layer around all services.

fn kv(context: &Context) -> HotKv<KvServer<KvService>> {
    HotKv { context: context.clone(), rest: service!(KvServer, context, KvService(context.clone())) }
}

fn services(context: &Context) -> Router {
    let mut routes = tonic::service::Routes::builder();
    routes
        .add_service(Known::new(kv(context)))
        .add_service(Known::new(HotWatch(WatchService(context.clone()))))
        .add_service(Known::new(service!(LeaseServer, context, LeaseService(context.clone()))))
        .add_service(Known::new(service!(MaintenanceServer, context, MaintenanceService(context.clone()))))
        .add_service(Known::new(service!(ClusterServer, context, ClusterService(context.clone()))))
        .add_service(Known::new(service!(AuthServer, context, AuthService(context.clone()))))
        .add_service(Known::new(service!(LockServer, context, LockService::new(context.clone()))))
        .add_service(Known::new(service!(ElectionServer, context, ElectionService::new(context.clone()))))
        .add_service(crate::health::grpc())
        .add_service(crate::reflection::service());
    routes.routes().into_axum_router().reset_fallback()
}

fn guard(context: &Context) -> Guard {
    let (node, of_learner) = (context.node.clone(), context.node.clone());
    let leader_lost = context.part.leader_lost.clone();
    Guard {
        message_bytes_max: context.message_bytes_max(),
        slow: context.limits.slow_request,
        has_leader: Arc::new(move || node.status().leader != 0),
        leader_lost: Arc::new(move || leader_lost.wait()),
        is_learner: Arc::new(move || of_learner.is_learner()),
    }
}
