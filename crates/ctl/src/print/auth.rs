//! Answers about users, roles and permissions.

use cli::quote;
use client::{
    authpb::{Permission, permission::Type},
    pb::{
        AuthRoleAddResponse, AuthRoleDeleteResponse, AuthRoleGetResponse, AuthRoleGrantPermissionResponse,
        AuthRoleListResponse, AuthRoleRevokePermissionResponse, AuthStatusResponse, AuthUserAddResponse,
        AuthUserChangePasswordResponse, AuthUserDeleteResponse, AuthUserGetResponse, AuthUserGrantRoleResponse,
        AuthUserListResponse, AuthUserRevokeRoleResponse, ResponseHeader,
    },
    prefix_end,
};
use prost::Message;

use super::{Object, Out, Show, Style, encode, fields, writeln};

const OPEN_END: &[u8] = b"\0";

/// An answer with nothing but a header, and the words for what was done.
pub(crate) struct Done<R, T = String> {
    pub text: T,
    pub response: R,
}

pub(crate) trait Headed: Message {
    fn header(&self) -> &Option<ResponseHeader>;
}

macro_rules! headed {
    ($($response:ty)*) => {$(
        impl Headed for $response {
            fn header(&self) -> &Option<ResponseHeader> {
                &self.header
            }
        }
    )*};
}

headed! {
    AuthUserAddResponse AuthUserDeleteResponse AuthUserChangePasswordResponse AuthUserGrantRoleResponse
    AuthUserRevokeRoleResponse AuthRoleAddResponse AuthRoleDeleteResponse AuthRoleGrantPermissionResponse
    AuthRoleRevokePermissionResponse
}

impl<R: Headed, T: AsRef<[u8]>> Show for Done<R, T> {
    fn simple(&self, _: Style, out: &mut Out) {
        out.extend_from_slice(self.text.as_ref());
        out.push(b'\n');
    }

    fn fields(&self, style: Style, out: &mut Out) -> Option<()> {
        fields::header(out, style, self.response.header());
        Some(())
    }

    fn json(&self, _: Style) -> String {
        Object::new().header(self.response.header()).end()
    }

    fn protobuf(&self) -> Option<Vec<u8>> {
        encode(&self.response)
    }
}

/// Keys are bytes, so the words around them are too.
pub(crate) fn revoked(role: &str, key: &[u8], end: &[u8]) -> Vec<u8> {
    let role = format!(" is revoked from role {role}");
    match end {
        b"" => [b"Permission of key ", key, role.as_bytes()].concat(),
        end => [b"Permission of range ", &range(key, end)[..], role.as_bytes()].concat(),
    }
}

/// `[a, b)`; what has no end is not closed either.
fn range(key: &[u8], end: &[u8]) -> Vec<u8> {
    match end {
        OPEN_END => [b"[", key, b", <open ended>"].concat(),
        end => [b"[", key, b", ", end, b")"].concat(),
    }
}

impl Show for AuthStatusResponse {
    fn simple(&self, _: Style, out: &mut Out) {
        writeln(out, &format!("Authentication Status: {}", self.enabled));
        writeln(out, &format!("AuthRevision: {}", self.auth_revision));
    }

    fn json(&self, _: Style) -> String {
        let object = Object::new().header(&self.header).boolean("enabled", self.enabled);
        object.uint("authRevision", self.auth_revision).end()
    }

    fn protobuf(&self) -> Option<Vec<u8>> {
        encode(self)
    }
}

pub(crate) struct UserShown {
    pub name: String,
    pub response: AuthUserGetResponse,
}

impl Show for UserShown {
    fn simple(&self, _: Style, out: &mut Out) {
        let roles: String = self.response.roles.iter().map(|role| format!(" {role}")).collect();
        writeln(out, &format!("User: {}\nRoles:{roles}", self.name));
    }

    fn json(&self, _: Style) -> String {
        Object::new().header(&self.response.header).strings("roles", &self.response.roles).end()
    }

    fn protobuf(&self) -> Option<Vec<u8>> {
        encode(&self.response)
    }
}

impl Show for AuthUserListResponse {
    fn simple(&self, _: Style, out: &mut Out) {
        self.users.iter().for_each(|user| writeln(out, user));
    }

    fn json(&self, _: Style) -> String {
        Object::new().header(&self.header).strings("users", &self.users).end()
    }

    fn protobuf(&self) -> Option<Vec<u8>> {
        encode(self)
    }
}

impl Show for AuthRoleListResponse {
    fn simple(&self, _: Style, out: &mut Out) {
        self.roles.iter().for_each(|role| writeln(out, role));
    }

    fn fields(&self, style: Style, out: &mut Out) -> Option<()> {
        fields::header(out, style, &self.header);
        let roles: String = self.roles.iter().map(|role| format!(" {}", quote(role.as_bytes()))).collect();
        writeln(out, &format!("\"Roles\" :{roles}"));
        Some(())
    }

    fn json(&self, _: Style) -> String {
        Object::new().header(&self.header).strings("roles", &self.roles).end()
    }

    fn protobuf(&self) -> Option<Vec<u8>> {
        encode(self)
    }
}

pub(crate) struct RoleShown {
    pub role: String,
    pub response: AuthRoleGetResponse,
}

impl RoleShown {
    fn list(&self, out: &mut Out, title: &str, kind: Type) {
        writeln(out, title);
        let granted = |permission: &&Permission| [kind, Type::Readwrite].contains(&permission.perm_type());
        // Role root may do everything without being given it.
        if self.role == "root" && self.response.perm.is_empty() {
            writeln(out, "\t[, <open ended>");
        }
        for permission in self.response.perm.iter().filter(granted) {
            out.push(b'\t');
            out.extend(keys(permission));
            out.push(b'\n');
        }
    }
}

fn keys(permission: &Permission) -> Vec<u8> {
    let (key, end) = (&permission.key[..], &permission.range_end[..]);
    match end {
        b"" => key.to_vec(),
        end if !key.is_empty() && prefix_end(key) == end => [&range(key, end)[..], b" (prefix ", key, b")"].concat(),
        end => range(key, end),
    }
}

impl Show for RoleShown {
    fn simple(&self, _: Style, out: &mut Out) {
        writeln(out, &format!("Role {}", self.role));
        self.list(out, "KV Read:", Type::Read);
        self.list(out, "KV Write:", Type::Write);
    }

    fn fields(&self, style: Style, out: &mut Out) -> Option<()> {
        fields::header(out, style, &self.response.header);
        for permission in &self.response.perm {
            // Two spaces, as scripts know it.
            fields::line(out, "PermType", format_args!(" {}", permission.perm_type().as_str_name()));
            fields::quoted(out, "Key", &permission.key);
            fields::quoted(out, "RangeEnd", &permission.range_end);
        }
        Some(())
    }

    fn json(&self, _: Style) -> String {
        let permission = |permission: &Permission| {
            Object::new()
                .int("permType", permission.perm_type.into())
                .bytes("key", &permission.key)
                .bytes("range_end", &permission.range_end)
                .end()
        };
        Object::new().header(&self.response.header).list("perm", self.response.perm.iter().map(permission)).end()
    }

    fn protobuf(&self) -> Option<Vec<u8>> {
        encode(&self.response)
    }
}
